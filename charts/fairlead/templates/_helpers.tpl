{{- /* Name of the objects in the release's namespace. */ -}}
{{- define "fairlead.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains (.Values.nameOverride | default .Chart.Name) .Release.Name -}}
{{ .Release.Name | replace "." "-" | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (.Values.nameOverride | default .Chart.Name) | replace "." "-" | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- /* "true" if decisions are served on the loopback address, which the pod must have for itself. */ -}}
{{- define "fairlead.servesDecisions" -}}
{{- if and .Values.decisions.enabled (not .Values.hostNetwork) -}}true{{- end -}}
{{- end -}}

{{- define "fairlead.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (include "fairlead.fullname" .) }}
{{- end -}}

{{- /* Labels that select the operator's pods; those of a Deployment can never change. */ -}}
{{- define "fairlead.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{- /* The selector labels as an argument of the program. */ -}}
{{- define "fairlead.found" -}}
app.kubernetes.io/name={{ .Chart.Name }},app.kubernetes.io/instance={{ .Release.Name }},app.kubernetes.io/component=operator
{{- end -}}

{{- define "fairlead.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ regexReplaceAll "^[^A-Za-z0-9]+|[^A-Za-z0-9]+$" (.Values.image.tag | default .Chart.AppVersion | trunc 63) "" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
{{ include "fairlead.commonLabels" . }}
{{- end -}}

{{- /* The labels with additional ones, which come first: some YAML readers reject a key that occurs twice. */ -}}
{{- define "fairlead.labelsAnd" -}}
{{ merge (dict) (.more | default dict) (include "fairlead.labels" .of | fromYaml) | toYaml }}
{{- end -}}

{{- /* Name of a scheduler's objects, as in render/object_names.py: long names are cut, and end with a hash. */ -}}
{{- define "fairlead.child" -}}
{{- $name := printf "kube-scheduler-%s" . -}}
{{- if lt (len $name) 46 -}}
{{ $name }}
{{- else -}}
{{ printf "%s-%s" (trunc 33 $name) (printf "\x00\x00\x00\x00\x00\x00\x00%c%s" (len .) . | sha256sum | trunc 12) }}
{{- end -}}
{{- end -}}

{{- define "fairlead.image" -}}
{{- with .Values.image -}}
{{ with $.Values.global.imageRegistry | default .registry }}{{ . }}/{{ end }}{{ .repository }}{{ with .digest }}@{{ . }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* Annotations of objects that exist only while the uninstall job runs. */ -}}
{{- define "fairlead.hook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{- /* Without an uninstall job the schedulers keep running, and keep their permissions. */ -}}
{{- define "fairlead.keptWithSchedulers" -}}
{{- if not .Values.uninstall.enabled -}}
annotations: {helm.sh/resource-policy: keep}
{{- end -}}
{{- end -}}

{{- /* Placement of the chart's pods. */ -}}
{{- define "fairlead.placement" -}}
{{- with include "fairlead.pullSecrets" (concat .Values.imagePullSecrets .Values.global.imagePullSecrets) | fromYamlArray }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- /* as the image's own user, 65532, or the one that the cluster assigns */}}
{{- $context := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- include "fairlead.over" (list $context .Values.podSecurityContext) }}
securityContext:
  {{- toYaml $context | nindent 2 }}
{{- end -}}

{{- /* Security context of the containers. */ -}}
{{- define "fairlead.locked" -}}
{{- $context := dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) "readOnlyRootFilesystem" true }}
{{- include "fairlead.over" (list $context .Values.securityContext) }}
{{- toYaml $context }}
{{- end -}}

{{- /* Sets the fields of the second map in the first one, at every depth. Helm's own merge takes false for missing. */ -}}
{{- define "fairlead.over" -}}
{{- $into := first . }}
{{- range $key, $value := last . }}
{{- if and (kindIs "map" $value) (kindIs "map" (get $into $key)) }}
{{- include "fairlead.over" (list (get $into $key) $value) }}
{{- else }}
{{- $_ := set $into $key $value }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The schedulers that always exist, as a list in YAML: those that are listed, and those that pods are given by optIn,
       which would wait if theirs went with its last policy. */ -}}
{{- define "fairlead.schedulers" -}}
{{- $all := .Values.schedulers }}
{{- $names := list }}
{{- range $all }}
{{- $names = append $names .name }}
{{- end }}
{{- range .Values.optIn }}
{{- if not (has .schedulerName $names) }}
{{- $names = append $names .schedulerName }}
{{- $all = append $all (dict "name" .schedulerName) }}
{{- end }}
{{- end }}
{{- toYaml $all }}
{{- end -}}

{{- /* Names of pull Secrets that are given as names or as objects, each once, as a list in YAML. */ -}}
{{- define "fairlead.pullSecrets" -}}
{{- $names := list }}
{{- range . }}
{{- $names = append $names (kindIs "map" . | ternary (get (kindIs "map" . | ternary . dict) "name") .) }}
{{- end }}
{{- uniq $names | toYaml }}
{{- end -}}

{{- /* Credentials for a Prometheus server, where webhook/data_sources/server_access.py looks for them. Without one the
       operator starts, and its polls say which Secret or key is missing. */ -}}
{{- define "fairlead.prometheusFiles" -}}
{{- $folder := printf "prometheus/%s" .name -}}
{{- with .ca }}
- {{ if .secret }}secret{{ else }}configMap{{ end }}:
    name: {{ .secret | default .configMap | quote }}
    optional: true
    items: [{key: {{ .key | quote }}, path: {{ $folder }}/ca.crt}]
{{- end }}
{{- with .bearerToken }}
- secret: {name: {{ .secret | quote }}, optional: true, items: [{key: {{ .key | quote }}, path: {{ $folder }}/token}]}
{{- end }}
{{- if hasKey . "serviceAccount" }}
- serviceAccountToken: {path: {{ $folder }}/token{{ with .serviceAccount.audience }}, audience: {{ . | quote }}{{ end }}}
{{- end }}
{{- with .basicAuth }}
{{- include "fairlead.secretFiles" (dict "secret" .secret "folder" $folder "keys" (list "username" "password")) }}
{{- end }}
{{- with .clientCertificate }}
{{- include "fairlead.secretFiles" (dict "secret" .secret "folder" $folder "keys" (list "tls.crt" "tls.key")) }}
{{- end }}
{{- end -}}

{{- define "fairlead.secretFiles" }}
- secret:
    name: {{ .secret | quote }}
    optional: true
    items:
    {{- range .keys }}
    - {key: {{ . }}, path: {{ $.folder }}/{{ . }}}
    {{- end }}
{{- end -}}

{{- /* ServiceMonitor of the Service that has the label fairlead.dev/metrics with the value `finds`. */ -}}
{{- define "fairlead.serviceMonitor" -}}
{{- $scrape := . }}
{{- with .monitor }}
{{- if .enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "fairlead.fullname" $scrape.of }}{{ $scrape.suffix }}
  namespace: {{ .namespace | default $scrape.of.Release.Namespace | quote }}
  labels:
    {{- include "fairlead.labelsAnd" (dict "of" $scrape.of "more" .labels) | nindent 4 }}
spec:
  {{- if .namespace }}
  namespaceSelector:
    matchNames: [{{ $scrape.of.Release.Namespace | quote }}]
  {{- end }}
  selector:
    matchLabels:
      {{- include "fairlead.selector" $scrape.of | nindent 6 }}
      fairlead.dev/metrics: {{ $scrape.finds | quote }}
  endpoints:
  - port: {{ $scrape.port }}
    {{- if $scrape.secure }}
    scheme: https
    {{- with .authorization }}
    authorization:
      {{- toYaml . | nindent 6 }}
    {{- else }}
    bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
    {{- end }}
    {{- with .tlsConfig | default $scrape.tls }}
    tlsConfig:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- end }}
    interval: {{ .interval }}
    {{- with .scrapeTimeout }}
    scrapeTimeout: {{ . }}
    {{- end }}
    {{- if .honorLabels }}
    honorLabels: true
    {{- end }}
    {{- with concat ($scrape.relabelings | default list) .relabelings }}
    relabelings:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .metricRelabelings }}
    metricRelabelings:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
{{- end }}
{{- end -}}
