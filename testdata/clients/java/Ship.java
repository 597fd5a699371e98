// Sends the same records with the libraries of pom.xml.
//
// usage: java Ship.java COUNT [KIND TARGET]...
//
// A target is HOST:PORT, or a file for kinds that end with "-file". Each text begins with KIND. Records: one of each
// level, an error with its stack, text beyond ASCII, a field of a context, two lines, one of a time long ago, and COUNT
// in a burst. One process sends all of them, since to start one takes longer than to send.

import co.elastic.clients.elasticsearch.ElasticsearchClient;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.ThreadContext;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.ConfigurationSource;
import org.apache.logging.log4j.core.config.xml.XmlConfiguration;
import org.apache.logging.log4j.core.impl.Log4jLogEvent;
import org.apache.logging.log4j.message.SimpleMessage;

public class Ship {
    static final Instant LONG_AGO = Instant.parse("2025-11-21T10:00:00.123Z");

    interface Sender {
        void log(Level level, String text, Map<String, String> fields, Exception error, Instant time) throws Exception;
    }

    static void ship(String kind, int count, Sender sender) throws Exception {
        Map<String, String> none = Map.of();
        sender.log(Level.INFO, kind + " it started", none, null, null);
        sender.log(Level.WARN, kind + " it is slow", Map.of("ms", "12.5"), null, null);
        sender.log(Level.ERROR, kind + " order failed", none, new IllegalStateException("it failed"), null);
        sender.log(Level.INFO, kind + " grüße 日本 🎉", none, null, null);
        sender.log(Level.INFO, kind + " nested", Map.of("user.id", "7", "user.name", "ann"), null, null);
        sender.log(Level.INFO, kind + " first line\n  second line", none, null, null);
        sender.log(Level.INFO, kind + " long ago", none, null, LONG_AGO);
        for (int number = 0; number < count; number++) {
            sender.log(Level.INFO, kind + " burst " + number, Map.of("number", "" + number), null, null);
        }
    }

    /** A configuration of people who use log4j2, with one appender. */
    static String configuration(String kind, String target) {
        String layout = switch (kind) {
            case "log4j2-json-file" -> "<JsonLayout compact='true' eventEol='true' properties='true'/>";
            case "log4j2-ecs-file", "log4j2-ecs" -> "<JsonTemplateLayout eventTemplateUri='classpath:EcsLayout.json'/>";
            case "log4j2-gcp-file" -> "<JsonTemplateLayout eventTemplateUri='classpath:GcpLayout.json'/>";
            case "log4j2-gelf-template-file" -> "<JsonTemplateLayout eventTemplateUri='classpath:GelfLayout.json'/>";
            case "log4j2-logstash-file" -> "<JsonTemplateLayout eventTemplateUri='classpath:LogstashJsonEventLayoutV1.json'/>";
            case "log4j2-gelf" -> "<GelfLayout compressionType='OFF' includeNullDelimiter='true' host='web-1'/>";
            default -> "<PatternLayout pattern='%d{ISO8601} %-5p [%t] %c{1.} - %m%n%throwable'/>";
        };
        String[] parts = target.split(":");
        String appender = switch (kind) {
            case "log4j2-gelf", "log4j2-ecs" -> "<Socket name='a' protocol='TCP' host='" + parts[0] + "' port='" + parts[1]
                + "'>" + layout + "</Socket>";
            case "log4j2-syslog" -> "<Syslog name='a' format='RFC5424' protocol='TCP' host='" + parts[0] + "' port='"
                + parts[1] + "' appName='shop' facility='LOCAL0' newLine='true' newLineEscape='\\n' exceptionPattern='%ex'"
                + " includeMDC='true' mdcId='mdc' messageId='m'/>";
            default -> "<File name='a' fileName='" + target + "'>" + layout + "</File>";
        };
        return "<Configuration status='ERROR'><Appenders>" + appender + "</Appenders><Loggers><Root level='DEBUG'>"
            + "<AppenderRef ref='a'/></Root></Loggers></Configuration>";
    }

    static void withLog4j2(String kind, String target, int count) throws Exception {
        LoggerContext context = new LoggerContext(kind);
        byte[] bytes = configuration(kind, target).getBytes(StandardCharsets.UTF_8);
        ConfigurationSource source = new ConfigurationSource(new ByteArrayInputStream(bytes));
        context.start(new XmlConfiguration(context, source));
        Logger logger = context.getLogger("com.shop.Order");
        ship(kind, count, (level, text, fields, error, time) -> {
            ThreadContext.putAll(fields);
            if (time == null) {
                logger.log(level, text, error);
            } else {
                logger.get().log(Log4jLogEvent.newBuilder().setLoggerName("com.shop.Order").setLevel(level)
                    .setMessage(new SimpleMessage(text)).setTimeMillis(time.toEpochMilli()).setThreadName("main").build());
            }
            ThreadContext.clearMap();
        });
        context.stop();
    }

    /** A document for each record, as programs without a logger of Elastic's index it. */
    static void withElasticsearch(String kind, String target, int count) throws Exception {
        try (ElasticsearchClient client = ElasticsearchClient.of(builder -> builder.host("http://" + target))) {
            ship(kind, count, (level, text, fields, error, time) -> {
                Map<String, Object> document = new HashMap<>(fields);
                document.put("@timestamp", (time == null ? Instant.now() : time).toString());
                document.put("message", text);
                document.put("log.level", level.name().toLowerCase());
                if (error != null) {
                    document.put("error", Map.of("message", error.getMessage(), "stack_trace",
                        error + "\n\tat " + error.getStackTrace()[0]));
                }
                var answer = client.index(request -> request.index("logs-app").document(document));
                if (answer.id().isEmpty() || answer.shards().successful().intValue() < 1) {
                    throw new IllegalStateException("the answer is " + answer);
                }
            });
        }
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        for (int at = 1; at + 1 < arguments.length; at += 2) {
            if (arguments[at].startsWith("elasticsearch")) {
                withElasticsearch(arguments[at], arguments[at + 1], count);
            } else {
                withLog4j2(arguments[at], arguments[at + 1], count);
            }
        }
    }
}
