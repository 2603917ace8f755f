{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/*
What can't start is refused here, before anything is installed, with the way out.
The schema refuses what is wrong by itself; this, what is wrong together.
*/}}
{{- define "moorage.validate" -}}
{{- $problems := concat
  (include "moorage.validate.images" . | fromYamlArray)
  (include "moorage.validate.leftovers" . | fromYamlArray)
  (include "moorage.validate.mode" . | fromYamlArray)
  (include "moorage.validate.certificates" . | fromYamlArray)
  (include "moorage.validate.scheduler" . | fromYamlArray)
  (include "moorage.validate.pods" . | fromYamlArray) -}}
{{- if $problems -}}
{{- fail (printf "these values can't work:\n- %s" (join "\n- " $problems)) -}}
{{- end -}}
{{- end }}

{{- define "moorage.validate.images" -}}
{{- $problems := list -}}
{{- if not .Values.image.registry -}}
{{- $problems = append $problems "image.registry is not set, and only the chart of a release has a default for it: build the images with make images and load them into the cluster, or push images and chart to a registry of yours with make release (docs/operate/quickstart.md has one command for kind, k3d, minikube and registries), and set image.registry to where they are" -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end }}

{{/* Definitions that an uninstalled release has kept. helm would refuse them, and not say what
to do. */}}
{{- define "moorage.validate.leftovers" -}}
{{- $problems := list -}}
{{- $left := list -}}
{{- if and .Release.IsInstall .Values.crds.enabled -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" -}}
{{- $name := ($.Files.Get $path | fromYaml).metadata.name -}}
{{- $definition := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name -}}
{{- if and $definition (not (include "moorage.owns" (dict "root" $ "object" $definition))) -}}
{{- $left = append $left $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $left -}}
{{- $left = join " " $left -}}
{{- $problems = append $problems (printf "CustomResourceDefinitions of Moorage's are there that are not this release's: an uninstalled one keeps them. Hand them over:\n  kubectl annotate --overwrite crd %s meta.helm.sh/release-name=%s meta.helm.sh/release-namespace=%s && kubectl label --overwrite crd %s app.kubernetes.io/managed-by=%s\n  If something else installs them, set crds.enabled=false" $left .Release.Name .Release.Namespace $left .Release.Service) -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end }}

{{- define "moorage.validate.mode" -}}
{{- $problems := list -}}
{{- if and (eq .Values.mode "Standalone") (not .Values.policies.enabled) (not (has "--skip-policy-check" .Values.controller.extraArgs)) -}}
{{- $problems = append $problems "mode Standalone needs policies.enabled=true: without the policy moorage-volumes-attached the controller does not lead, and nothing is attached" -}}
{{- end -}}
{{- if and (eq (include "moorage.mode" .) "Standalone") (eq (int .Values.controller.replicas) 0) -}}
{{- $problems = append $problems "controller.replicas=0 needs mode=Cooperative: in mode Standalone nobody else attaches" -}}
{{- end -}}
{{- if and .Values.networkFences.enabled (ne (include "moorage.mode" .) "Standalone") -}}
{{- $problems = append $problems "networkFences.enabled needs mode=Standalone: beside Moorage kube-controller-manager detaches, which knows nothing of NetworkFences" -}}
{{- end -}}
{{- if and .Values.node.required (ne (include "moorage.mode" .) "Standalone") -}}
{{- $problems = append $problems "node.required needs mode=Standalone: beside Moorage kube-controller-manager detaches, which asks no moorage-node" -}}
{{- else if and .Values.node.required (not (include "moorage.nodeRuns" .)) -}}
{{- $problems = append $problems "node.required needs node.enabled: without moorage-node no volume would leave a node, but by force" -}}
{{- end -}}
{{- $taken := dict
  "controller" (dict "--mode" "mode" "--namespace" "the release's namespace" "--listen" "port 8080" "--stay-attached" "attacher.stayAttached" "--disable-force-detach-on-timeout" "controller.disableForceDetachOnTimeout" "--require-node-report" "node.required" "--network-fences" "networkFences.enabled" "--operation-tickets" "operationTickets.enabled")
  "scheduler" (dict "--config" "scheduler.pluginArgs" "--secure-port" "port 10259" "--extender-listen" "extender.enabled" "--extender-client-names" "extender.clientNames")
  "webhook" (dict "--listen" "webhook.port" "--scheduler-name" "schedulerName" "--tls-cert-file" "the Secret moorage-webhook-tls" "--tls-private-key-file" "the Secret moorage-webhook-tls")
  "node" (dict "--kubelet-root" "node.kubeletRoot" "--listen" "port 8080") -}}
{{- range $component, $flags := $taken -}}
{{- range (get $.Values $component).extraArgs -}}
{{- $flag := first (splitList "=" .) -}}
{{- if hasKey $flags $flag -}}
{{- $problems = append $problems (printf "%s.extraArgs has %s, which the chart gives itself: use %s" $component $flag (get $flags $flag)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end }}

{{- define "moorage.validate.certificates" -}}
{{- $problems := list -}}
{{- with .Values.webhook.caBundle -}}
{{- if not (regexMatch "^\\s*(-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----\\s*)+$" .) -}}
{{- $problems = append $problems "webhook.caBundle is not PEM: it has to be one or more certificates, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----, as --set-file webhook.caBundle=ca.crt gives them" -}}
{{- end -}}
{{- end -}}
{{- with .Values.extender -}}
{{- if and .enabled (not $.Values.certManager.enabled) (not .certificatesGiven) -}}
{{- $problems = append $problems "extender.enabled needs certificates: set certManager.enabled=true, or make the Secrets moorage-extender-tls and moorage-extender-client yourself and set extender.certificatesGiven=true" -}}
{{- end -}}
{{- end -}}
{{- $live := lookup "v1" "Namespace" "" "kube-system" -}}
{{- $asked := or (eq (include "moorage.certificates" .) "cert-manager") (and .Values.extender.enabled .Values.certManager.enabled (not .Values.extender.certificatesGiven)) -}}
{{- if and $live $asked (not (.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
{{- $problems = append $problems "cert-manager is not installed in this cluster: install it, or set certManager.enabled=false, so that a Job of the chart's own makes the webhook's certificate" -}}
{{- end -}}
{{- with .Values.webhook.certificate -}}
{{- $duration := include "moorage.seconds" .duration | int64 -}}
{{- $before := include "moorage.seconds" .renewBefore | int64 -}}
{{- if ge $before $duration -}}
{{- $problems = append $problems (printf "webhook.certificate.renewBefore, %s, has to be shorter than webhook.certificate.duration, %s: a certificate would be renewed for ever" .renewBefore .duration) -}}
{{- end -}}
{{- if or (lt $duration 3600) (lt $before 300) -}}
{{- $problems = append $problems "cert-manager refuses a webhook.certificate.duration below 1h and a webhook.certificate.renewBefore below 5m" -}}
{{- end -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end }}

{{- define "moorage.validate.scheduler" -}}
{{- $problems := list -}}
{{- if and .Values.scheduler.onlyScheduler (not .Values.scheduler.nodes) -}}
{{- $problems = append $problems "scheduler.onlyScheduler needs scheduler.nodes: if all of its pods were lost at once, nobody would place new ones; name two or three control-plane nodes, which run one each without being scheduled" -}}
{{- end -}}
{{- if eq .Values.schedulerName "default-scheduler" -}}
{{- $problems = append $problems "schedulerName can't be default-scheduler, which is the stock kube-scheduler's: choose another, such as moorage-scheduler; where there is no other kube-scheduler, scheduler.onlyScheduler=true serves the pods of default-scheduler too" -}}
{{- end -}}
{{- if eq .Values.schedulerName "moorage-controller" -}}
{{- $problems = append $problems (printf "schedulerName %s is the name of another component's Lease: choose another, such as moorage-scheduler" .Values.schedulerName) -}}
{{- end -}}
{{- $names := list "not-in-an-excluded-namespace" "not-a-mirror-pod" -}}
{{- range .Values.webhook.matchConditions -}}
{{- if has .name $names -}}
{{- $problems = append $problems (printf "webhook.matchConditions has the name %s twice, or it is one of the chart's own: choose another" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end }}

{{/* What the pod templates of the values can't be, and the schema can't see. */}}
{{- define "moorage.validate.pods" -}}
{{- $problems := list -}}
{{- range $component := list "controller" "scheduler" "webhook" "node" "certificateJob" -}}
{{- $own := ternary "certificate" $component (eq $component "certificateJob") -}}
{{- range (get (get ((get $.Values $component).podTemplate | default dict) "spec" | default dict) "containers" | default list) -}}
{{- if eq .name $own -}}
{{- if or .args .command -}}
{{- $problems = append $problems (printf "%s.podTemplate gives args or a command to the container %s: use %s.extraArgs for flags" $component .name $component) -}}
{{- end -}}
{{- else if not .image -}}
{{- $problems = append $problems (printf "%s.podTemplate has a container %s without an image: the chart's own container is called %s" $component .name $own) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range get (.Values.podTemplate.spec | default dict) "containers" | default list -}}
{{- if not .image -}}
{{- $problems = append $problems (printf "podTemplate has a container %s without an image: to change a container of the chart's, use the podTemplate of its component" .name) -}}
{{- end -}}
{{- end -}}
{{- $pods := 0 -}}
{{- range $component := list "controller" "scheduler" "webhook" -}}
{{- with get $.Values $component -}}
{{- $pods = add $pods (mul 2 (len (.nodes | default list) | default .replicas)) -}}
{{- end -}}
{{- end -}}
{{- if eq (include "moorage.certificates" .) "job" -}}
{{- $pods = add $pods 2 -}}
{{- end -}}
{{- with .Values.criticalPods -}}
{{- if and (hasPrefix "system-" (dig "spec" "priorityClassName" "" $.Values.podTemplate)) (lt (int .) (int $pods)) -}}
{{- $problems = append $problems (printf "criticalPods is %d, and an upgrade may need %d pods at once: set criticalPods to that or more, or to 0 for no quota" (int .) (int $pods)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end }}

{{/* A duration such as 2160h, in seconds. */}}
{{- define "moorage.seconds" -}}
{{- $unit := dict "h" 3600 "m" 60 "s" 1 -}}
{{- mul (trimSuffix (substr (sub (len .) 1 | int) (len .) .) . | int64) (get $unit (substr (sub (len .) 1 | int) (len .) .)) -}}
{{- end }}
