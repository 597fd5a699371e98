{{- define "logpond.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "logpond.labels" -}}
app.kubernetes.io/name: logpond
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "logpond.selector" -}}
app.kubernetes.io/name: logpond
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "logpond.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "logpond.scheme" -}}
{{ if .Values.http.tlsSecret }}https{{ else }}http{{ end }}
{{- end -}}

{{- define "logpond.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end -}}
