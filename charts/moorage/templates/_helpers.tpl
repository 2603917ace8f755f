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

{{/* The Deployment of a role: the argument is what moorage.podTemplate takes, and replicas
where the role's value does not count. */}}
{{- define "moorage.deployment" -}}
replicas: {{ .replicas | default .values.replicas }}
revisionHistoryLimit: 3
strategy:
  type: RollingUpdate
  {{- if .values.hostNetwork }}
  # The port of a node is free only after the old pod is gone.
  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
  {{- else }}
  rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  {{- end }}
{{- end }}

{{/* A pod template. The argument is a dict of root, component, values (those of the component)
and pod: the component's own part of the template, in YAML. Each part is merged into the one
before: what all pods have in common, the component's part, the value podTemplate, and the
component's value podTemplate. With node, that node runs the pod and no scheduler places it. */}}
{{- define "moorage.podTemplate" -}}
{{- $template := include "moorage.podCommon" . | fromYaml -}}
{{- range list (fromYaml .pod) .root.Values.podTemplate (.values.podTemplate | default dict) -}}
{{- include "moorage.merge" (dict "into" $template "from" (deepCopy .)) -}}
{{- end -}}
{{- with .node -}}
{{- $_ := set $template.spec "nodeName" . -}}
{{- range list "nodeSelector" "affinity" "topologySpreadConstraints" -}}
{{- $_ := unset $template.spec . -}}
{{- end -}}
{{- end -}}
{{- toYaml $template -}}
{{- end }}

{{/* The part that all pods have in common, as the restricted pod security standard asks. No
number of a user: the images have one, and OpenShift gives each namespace its own. Another
scheduler than Moorage's places the pods, also where a webhook changes the default. */}}
{{- define "moorage.podCommon" -}}
metadata:
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
spec:
  serviceAccountName: moorage-{{ .component }}
  automountServiceAccountToken: true
  schedulerName: default-scheduler
  securityContext:
    runAsNonRoot: true
    seccompProfile:
      type: RuntimeDefault
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Each pod on a node of its own if there are enough nodes, and in all zones. */}}
{{- define "moorage.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: DoNotSchedule
    nodeTaintsPolicy: Honor
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "moorage.selector" . | nindent 8 }}
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "moorage.selector" . | nindent 8 }}
{{- end }}

{{/* Merges the map from into the map into, as kubectl patch does for a pod: maps by key, the
lists named here by the key of their items, all other lists as a whole; null removes. An empty
map or list is left out, because the API server does not keep it. */}}
{{- define "moorage.merge" -}}
{{- $keys := dict "containers" "name" "initContainers" "name" "volumes" "name" "imagePullSecrets" "name"
  "env" "name" "volumeMounts" "mountPath" "volumeDevices" "devicePath" "ports" "containerPort"
  "topologySpreadConstraints" "topologyKey" "hostAliases" "ip" -}}
{{- $into := .into -}}
{{- range $field, $value := .from -}}
{{- $have := get $into $field -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $into $field -}}
{{- else if and (kindIs "map" $value) (kindIs "map" $have) -}}
{{- include "moorage.merge" (dict "into" $have "from" $value) -}}
{{- else if and (kindIs "slice" $value) (kindIs "slice" $have) (hasKey $keys $field) -}}
{{- $key := get $keys $field -}}
{{- $all := $have -}}
{{- range $item := $value -}}
{{- $same := dict -}}
{{- range $old := $all -}}
{{- if eq (toString (get $old $key)) (toString (get $item $key)) -}}
{{- $same = $old -}}
{{- end -}}
{{- end -}}
{{- if $same -}}
{{- include "moorage.merge" (dict "into" $same "from" $item) -}}
{{- else -}}
{{- $all = append $all $item -}}
{{- end -}}
{{- end -}}
{{- $_ := set $into $field $all -}}
{{- else if or $value (not (or (kindIs "map" $value) (kindIs "slice" $value))) -}}
{{- $_ := set $into $field $value -}}
{{- else if kindIs "slice" $value -}}
{{- $_ := unset $into $field -}}
{{- end -}}
{{- end -}}
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

{{/* How probes are asked that share a port with metrics. */}}
{{- define "moorage.probeScheme" -}}
{{ ternary "HTTPS" "HTTP" .Values.metrics.secure }}
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
