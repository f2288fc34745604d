{{- define "millstream.labels" -}}
app.kubernetes.io/name: millstream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "millstream.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}
