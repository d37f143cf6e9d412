{{- define "optimus.labels" -}}
app.kubernetes.io/name: optimus
app.kubernetes.io/part-of: optimus
{{- end }}

{{- define "optimus.picked" -}}
app.kubernetes.io/name: optimus
app.kubernetes.io/component: controller
{{- end }}

{{- define "optimus.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
