// Commands that send logs to this server.

import { T } from "../strings";

export interface Sender {
  name: string;
  text: string;
  command: string;
}

/** A listener of the server, by its setting. */
export interface Listener {
  name: string;
  address: string;
  up: boolean;
}

/** Ports of a server that says nothing of its listeners. */
const DEFAULT_PORTS = { "syslog-tcp": "5514", fluent: "24224" };

const LOOPBACK = /^(127\.|\[::1\]|localhost$)/;

/** The port of a listener, and a sentence about it where senders may not reach it. */
function reach(setting: keyof typeof DEFAULT_PORTS, host: string, listeners: Listener[] | null) {
  if (!listeners) return { port: DEFAULT_PORTS[setting], text: T.portOf(setting) };
  const found = listeners.find(({ name }) => name === setting);
  if (!found) return { port: DEFAULT_PORTS[setting], text: T.listenerOff(setting) };
  const at = found.address.lastIndexOf(":");
  const [bound, port] = [found.address.slice(0, at), found.address.slice(at + 1)];
  const near = LOOPBACK.test(bound) && !LOOPBACK.test(host);
  const text = !found.up ? T.portTaken(found.address) : near ? T.listensNear(setting, found.address) : "";
  return { port, text };
}

export function senders(base: URL, listeners: Listener[] | null): Sender[] {
  const url = base.href.replace(/\/$/, "");
  const { hostname, port, protocol, pathname } = base;
  const tls = protocol === "https:";
  const number = port || (tls ? "443" : "80");
  const host = hostname;
  const uri = pathname.replace(/\/$/, "");
  const syslog = reach("syslog-tcp", host, listeners);
  const fluent = reach("fluent", host, listeners);
  return [
    {
      name: "One line",
      text: "To see that it works: one record from a shell.",
      command: `echo 'hello 42' | curl --data-binary @- -H 'content-type: text/plain' ${url}/api/v1/push`,
    },
    {
      name: "File",
      text: "Follows files. A restart goes on where it ended.",
      command: `logpond forward --addr ${url} --tail /var/log/nginx/access.log '/var/log/app/*.log'`,
    },
    {
      name: "Syslog",
      text: `For rsyslog: save this as /etc/rsyslog.d/90-logpond.conf and restart rsyslog. ${syslog.text}`.trim(),
      command: `# To try it:\n# logger --server ${host} --port ${syslog.port} --tcp --rfc5424 'hello'\n*.* action(type="omfwd" target="${host}" port="${syslog.port}" protocol="tcp"\n  template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted"\n  queue.type="LinkedList" queue.filename="logpond" action.resumeRetryCount="-1")`,
    },
    {
      name: "journald",
      text: "The journal of a machine, with all fields.",
      command: `logpond forward --journal --addr ${url}\n\n# or systemd's own uploader, in /etc/systemd/journal-upload.conf:\n[Upload]\nURL=${url}`,
    },
    {
      name: "Docker",
      text: `The driver fluentd is part of Docker. ${fluent.text}`.trim(),
      command: `docker run --log-driver fluentd --log-opt fluentd-address=${host}:${fluent.port} \\\n  --log-opt tag='{{.Name}}' IMAGE`,
    },
    {
      name: "Kubernetes",
      text: "Fluent Bit on every node, with the names of pods.",
      command: `helm repo add fluent https://fluent.github.io/helm-charts\nhelm install logs fluent/fluent-bit --set-string config.outputs="[OUTPUT]\n    Name loki\n    Match *\n    Host ${host}\n    Port ${number}${uri ? `\n    URI ${uri}/loki/api/v1/push` : ""}${tls ? "\n    tls on" : ""}\n    labels job=fluent-bit\n    auto_kubernetes_labels on"`,
    },
    {
      name: "OTLP",
      text: "From SDKs of OpenTelemetry and from its collector.",
      command: `export OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=${url}/v1/logs\nexport OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=http/protobuf\n\n# in the collector:\nexporters:\n  otlphttp:\n    logs_endpoint: ${url}/v1/logs`,
    },
    {
      name: "Vector",
      text: "A sink of Vector.",
      command: `[sinks.logpond]\ntype = "loki"\ninputs = ["my_source"]\nendpoint = "${url}"\nencoding.codec = "json"\nlabels.app = "my-app"`,
    },
    {
      name: "Fluent Bit",
      text: "An output of Fluent Bit.",
      command: `[OUTPUT]\n    Name   loki\n    Match  *\n    Host   ${host}\n    Port   ${number}${uri ? `\n    URI    ${uri}/loki/api/v1/push` : ""}${tls ? "\n    tls    on" : ""}\n    Labels app=my-app`,
    },
    {
      name: "Alloy",
      text: "Grafana Alloy, as for Loki.",
      command: `local.file_match "logs" {\n  path_targets = [{"__path__" = "/var/log/*.log"}]\n}\nloki.source.file "logs" {\n  targets    = local.file_match.logs.targets\n  forward_to = [loki.write.logpond.receiver]\n}\nloki.write "logpond" {\n  endpoint {\n    url = "${url}/loki/api/v1/push"\n  }\n}`,
    },
  ];
}
