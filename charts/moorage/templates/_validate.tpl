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
{{- if and .Values.networkFences.enabled (ne (include "moorage.mode" .) "Standalone") -}}
{{- $problems = append $problems "networkFences.enabled needs mode=Standalone: beside Moorage kube-controller-manager detaches, which knows nothing of NetworkFences" -}}
{{- end -}}
{{- $taken := dict
  "controller" (dict "--mode" "mode" "--namespace" "the release's namespace" "--listen" "controller.port" "--stay-attached" "attacher.stayAttached" "--disable-force-detach-on-timeout" "controller.disableForceDetachOnTimeout" "--network-fences" "networkFences.enabled" "--operation-tickets" "operationTickets.enabled")
  "scheduler" (dict "--config" "scheduler.pluginArgs" "--secure-port" "scheduler.port" "--extender-listen" "extender.port" "--extender-client-names" "extender.clientNames")
  "webhook" (dict "--listen" "webhook.port" "--scheduler-name" "schedulerName" "--tls-cert-file" "webhook.certificateSecret" "--tls-private-key-file" "webhook.certificateSecret")
  "node" (dict "--kubelet-root" "node.kubeletRoot" "--listen" "node.port" "--repair" "node.repair") -}}
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
{{- $problems = append $problems "extender.enabled needs certificates: set certManager.enabled=true, or make the Secrets extender.certificateSecret and extender.clientSecret yourself and set extender.certificatesGiven=true" -}}
{{- end -}}
{{- $secrets := list $.Values.webhook.certificateSecret .certificateSecret .clientSecret -}}
{{- if and .enabled (lt (len (uniq $secrets)) 3) -}}
{{- $problems = append $problems "webhook.certificateSecret, extender.certificateSecret and extender.clientSecret have to be three Secrets: give each its own name" -}}
{{- end -}}
{{- end -}}
{{- $live := lookup "v1" "Namespace" "" "kube-system" -}}
{{- $asked := or (eq (include "moorage.certificates" .) "cert-manager") (and .Values.extender.enabled .Values.certManager.enabled (not .Values.extender.certificatesGiven)) -}}
{{- if and $live $asked (not (.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
{{- $problems = append $problems "cert-manager is not installed in this cluster: install it, or set certManager.enabled=false, so that a Job of the chart's own makes the webhook's certificate" -}}
{{- end -}}
{{- range $by := list "certManager" "certificateJob" -}}
{{- with get $.Values $by -}}
{{- $duration := include "moorage.seconds" .duration | int64 -}}
{{- $before := include "moorage.seconds" .renewBefore | int64 -}}
{{- if ge $before $duration -}}
{{- $problems = append $problems (printf "%s.renewBefore, %s, has to be shorter than %s.duration, %s: a certificate would be renewed for ever" $by .renewBefore $by .duration) -}}
{{- end -}}
{{- if and (eq $by "certManager") (or (lt $duration 3600) (lt $before 300)) -}}
{{- $problems = append $problems "cert-manager refuses a certManager.duration below 1h and a certManager.renewBefore below 5m" -}}
{{- end -}}
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
{{- if and .Values.extender.enabled (eq (int .Values.extender.port) (int .Values.scheduler.port)) -}}
{{- $problems = append $problems "extender.port and scheduler.port have to be different" -}}
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

{{- define "moorage.validate.pods" -}}
{{- $problems := list -}}
{{- $pods := 0 -}}
{{- range $component := list "controller" "scheduler" "webhook" -}}
{{- with get $.Values $component -}}
{{- if and .strategy (eq (.strategy.type | default "RollingUpdate") "Recreate") .strategy.rollingUpdate -}}
{{- $problems = append $problems (printf "%s.strategy has rollingUpdate beside type Recreate: leave one of them out" $component) -}}
{{- end -}}
{{- $pods = add $pods (mul 2 (len (.nodes | default list) | default .replicas)) -}}
{{- end -}}
{{- end -}}
{{- if eq (include "moorage.certificates" .) "job" -}}
{{- $pods = add $pods 2 -}}
{{- end -}}
{{- with .Values.criticalPods -}}
{{- if and (hasPrefix "system-" $.Values.priorityClassName) (lt (int .) (int $pods)) -}}
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
