{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/*
The names of objects are fixed, not derived from the release: there is one
Moorage in a cluster, and the policies and the webhook name its service accounts.
*/}}

{{/*
The mode. Where it is not named it is Cooperative. A controller goes on in Standalone mode
until a person hands that over, whatever the mode here; helm says so where it sees the cluster.
*/}}
{{- define "moorage.mode" -}}
{{- if not .Values.mode -}}
{{- $installed := lookup "apps/v1" "Deployment" .Release.Namespace "moorage-controller" -}}
{{- if $installed -}}
{{- $args := (index $installed.spec.template.spec.containers 0).args | default list -}}
{{- if not (has "--mode=Cooperative" $args) -}}
{{- fail "a Moorage in mode Standalone is installed: name the mode, --set mode=Standalone to go on with it, or --set mode=Cooperative to prepare the hand-over to kube-controller-manager's attach/detach controller (docs/operate/modes.md)" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- .Values.mode | default "Cooperative" -}}
{{- end }}

{{/* Whether moorage-node runs; empty if not. Where that is not said it runs in Standalone
mode, in which what it says decides. */}}
{{- define "moorage.nodeRuns" -}}
{{- $enabled := .Values.node.enabled -}}
{{- if kindIs "invalid" $enabled -}}
{{- $enabled = eq .Values.mode "Standalone" -}}
{{- end -}}
{{- if $enabled -}}true{{- end -}}
{{- end }}

{{/* Whether an object of the cluster is this release's, as helm says; empty if not. The
argument is a dict of root and object. */}}
{{- define "moorage.owns" -}}
{{- $by := .object.metadata.annotations | default dict -}}
{{- $managed := eq (dig "app.kubernetes.io/managed-by" "" (.object.metadata.labels | default dict)) .root.Release.Service -}}
{{- if and $managed (eq (dig "meta.helm.sh/release-name" "" $by) .root.Release.Name) (eq (dig "meta.helm.sh/release-namespace" "" $by) .root.Release.Namespace) -}}
true
{{- end -}}
{{- end }}

{{/* Labels of every object; the argument is a dict of root and component, and of
more labels where an object has some of its own. */}}
{{- define "moorage.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" "moorage"
  "app.kubernetes.io/component" .component
  "app.kubernetes.io/part-of" "moorage"
  "app.kubernetes.io/managed-by" .root.Release.Service
  "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- toYaml (merge $own (.more | default dict) .root.Values.commonLabels) -}}
{{- end }}

{{/* Labels of a component's pods. */}}
{{- define "moorage.podLabels" -}}
{{- include "moorage.labels" (dict "root" .root "component" .component "more" .values.podLabels) -}}
{{- end }}

{{/* What a component's pods are selected by. */}}
{{- define "moorage.selector" -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* An image: of the roles, or, with the name node or attacher, of that program. */}}
{{- define "moorage.image" -}}
{{ .root.Values.image.registry }}/moorage{{ with .name }}-{{ . }}{{ end }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- with get (.root.Values.image.digests | default dict) (.name | default "moorage") }}@{{ . }}{{ end }}
{{- end }}

{{/* The user name of the controller's service account, as policies see it. */}}
{{- define "moorage.controllerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:moorage-controller
{{- end }}

{{/* The user name of the scheduler's service account, as policies see it. */}}
{{- define "moorage.schedulerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:moorage-scheduler
{{- end }}

{{/* What the Deployments of every component have in common; the argument is a dict of
root, component and values, and of replicas where those are not the component's. */}}
{{- define "moorage.deployment" -}}
replicas: {{ .replicas | default .values.replicas }}
revisionHistoryLimit: {{ .root.Values.revisionHistoryLimit }}
strategy:
  {{- if .values.strategy }}
  {{- toYaml .values.strategy | nindent 2 }}
  {{- else if .values.hostNetwork }}
  # The port of a node is free only once the old pod is gone.
  type: RollingUpdate
  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
  {{- else }}
  type: RollingUpdate
  rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  {{- end }}
{{- end }}

{{/* What the pods of every component have in common, as the restricted pod security
standard asks. Another scheduler than Moorage's places them, whatever a webhook of
somebody else's would make the default. With node, none places them. */}}
{{- define "moorage.pod" -}}
schedulerName: default-scheduler
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- range $name, $id := .root.Values.podSecurityContext }}
  {{- if $id }}
  {{ $name }}: {{ int64 $id }}
  {{- end }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat .root.Values.tolerations (.values.tolerations | default list) }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .node }}
nodeName: {{ .node }}
{{- else }}
{{- with merge dict (.values.nodeSelector | default dict) .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $selector := include "moorage.selector" . }}
{{- with .values.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - {{- toYaml . | nindent 4 }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The argument, a map, without what is empty in it: null in the values leaves empty maps,
and the API server drops them, so that a diff would never end. */}}
{{- define "moorage.filled" -}}
{{- $filled := dict -}}
{{- range $name, $value := . -}}
{{- if $value -}}
{{- $_ := set $filled $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $filled -}}
{{- end }}

{{/* A probe: what the chart says of it, and what the values do. */}}
{{- define "moorage.probe" -}}
{{- toYaml (merge dict .values .chart) -}}
{{- end }}

{{/* How probes are asked that share a port with metrics. */}}
{{- define "moorage.probeScheme" -}}
{{ ternary "HTTPS" "HTTP" .Values.metrics.secure }}
{{- end }}

{{/* How many pods of a component a drain may take at once. */}}
{{- define "moorage.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: moorage-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .values.maxUnavailable }}
  # A pod that is not ready protects nothing.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "moorage.selector" . | nindent 6 }}
{{- end }}

{{/* The Lease of a driver's attachers; the argument is the driver's name, which is
spelled as csi-lib-utils does. */}}
{{- define "moorage.attacherLease" -}}
external-attacher-leader-{{ regexReplaceAll "[^a-zA-Z0-9-]" . "-" }}
{{- end }}

{{/* Who makes the webhook's certificate: cert-manager, the chart's job, or you. */}}
{{- define "moorage.certificates" -}}
{{- if .Values.webhook.caBundle -}}given
{{- else if .Values.certManager.enabled -}}cert-manager
{{- else -}}job
{{- end -}}
{{- end }}

{{/*
CEL: the ticket types whose use a role in a namespace permits. The use of any other
is permitted for the whole cluster, or not at all. internal/ledger has the table of
types, and a test holds the two together.
*/}}
{{- define "moorage.namespacedTicketTypes" -}}
['Manual', 'Snapshot', 'Backup']
{{- end }}

{{/*
CEL: the types of tickets that nothing interrupts, so that a time has to end them. A test
holds this and the table of types in internal/ledger together.
*/}}
{{- define "moorage.timedTicketTypes" -}}
['Restore', 'Expansion', 'Clone', 'Rebuild']
{{- end }}

{{/*
CEL: whether whoever asks may reserve for pods, as schedulers do: the right to use
the ticket type Pod everywhere.
*/}}
{{- define "moorage.reserves" -}}
authorizer.group('moorage.dev').resource('tickettypes').name('Pod').check('use').allowed()
{{- end }}

{{- define "moorage.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/*
CEL: the volumes of a pod that can be attachable. Claims and generic ephemeral
volumes may turn out not to be; inline ones are those that Kubernetes migrates to
CSI, and iSCSI and FC, which are attached without a call. webhook/pod has the
same list in Go, and a test holds the two together.
*/}}
{{- define "moorage.attachable" -}}
has(v.persistentVolumeClaim) || has(v.ephemeral) || has(v.gcePersistentDisk) || has(v.awsElasticBlockStore) || has(v.cinder) || has(v.azureDisk) || has(v.azureFile) || has(v.vsphereVolume) || has(v.portworxVolume) || has(v.iscsi) || has(v.fc)
{{- end }}
