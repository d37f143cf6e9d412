{{- /* Of what is installed, or the beginning of its name. Not that of the release: a second one in the same cluster would
       schedule the same nodes under a lease of its own; so it is refused, unless another name is asked for. */}}
{{- define "optimus.name" -}}
{{ .Values.fullnameOverride | default "optimus" }}
{{- end }}

{{- define "optimus.pickedBy" -}}
app.kubernetes.io/name: optimus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "optimus.picked" -}}
{{ include "optimus.pickedBy" . }}
app.kubernetes.io/component: controller
{{- end }}

{{- define "optimus.labels" -}}
{{ include "optimus.pickedBy" . }}
app.kubernetes.io/part-of: optimus
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "optimus.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}
{{- else }}{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "optimus.optingInApi" -}}
{{- $group := "admissionregistration.k8s.io" }}
{{- if .Capabilities.APIVersions.Has (printf "%s/v1/MutatingAdmissionPolicy" $group) }}{{ $group }}/v1
{{- else if .Capabilities.APIVersions.Has (printf "%s/v1beta1/MutatingAdmissionPolicy" $group) }}{{ $group }}/v1beta1
{{- else }}{{ fail (printf "optingIn: this server does not serve MutatingAdmissionPolicy (Kubernetes 1.36 does). Set optingIn=false and write schedulerName: %s into manifests. With `helm template`, say what the server has: --api-versions %s/v1/MutatingAdmissionPolicy" .Values.schedulerName $group) }}
{{- end }}
{{- end }}

{{- /* Kinds of work that the values add to the table (docs/reference/grouping.md): what follows from them. */}}
{{- define "optimus.groupOfKind" -}}
{{ if contains "/" .kind }}{{ splitList "/" .kind | first }}{{ end }}
{{- end }}

{{- define "optimus.pluralOfKind" -}}
{{ .plural | default (printf "%ss" (splitList "/" .kind | last | lower)) }}
{{- end }}

{{- define "optimus.rightsOfKinds" -}}
{{- range .Values.kinds }}
- apiGroups: [{{ include "optimus.groupOfKind" . | quote }}]
  resources: [{{ include "optimus.pluralOfKind" . }}]
  verbs: [get, list, watch{{ if .suspend }}, patch{{ end }}]
{{- end }}
{{- end }}

{{- define "optimus.tenantsOfKinds" -}}
{{- range .Values.kinds }}
- apiGroups: [{{ include "optimus.groupOfKind" . | quote }}]
  resources: [{{ include "optimus.pluralOfKind" . }}, "*/scale"]
  verbs: [get, list, watch, create, update, patch, delete]
{{- end }}
{{- end }}

{{- define "optimus.rulesOfKinds" -}}
{{- range .Values.kinds }}
- apiGroups: [{{ include "optimus.groupOfKind" . | quote }}]
  apiVersions: ["*"]
  operations: [CREATE, UPDATE]
  resources: [{{ include "optimus.pluralOfKind" . }}]
{{- end }}
{{- end }}
