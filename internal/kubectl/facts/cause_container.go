// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// containerCause says which container keeps a bound pod from running; nil when
// none does.
func (w *World) containerCause(p *corev1.Pod) *Cause {
	for _, list := range []struct {
		kind     string
		statuses []corev1.ContainerStatus
	}{{"init container", p.Status.InitContainerStatuses}, {"container", p.Status.ContainerStatuses}} {
		for i := range list.statuses {
			if c := w.waitingContainer(p, list.kind, &list.statuses[i]); c != nil {
				return c
			}
		}
	}
	if c := w.notReadyContainer(p); c != nil {
		return c
	}
	return gateCause(p)
}

// gateCause says which of a running pod's readiness gates keeps it from being ready; nil when
// none does.
func gateCause(p *corev1.Pod) *Cause {
	ready := podCondition(p, corev1.PodReady)
	if p.Status.Phase != corev1.PodRunning || ready == nil || ready.Status == corev1.ConditionTrue {
		return nil
	}
	for _, gate := range p.Spec.ReadinessGates {
		c := podCondition(p, gate.ConditionType)
		if c != nil && c.Status == corev1.ConditionTrue {
			continue
		}
		out := &Cause{Of: OfContainer, Code: "ReadinessGate", Since: ready.LastTransitionTime.Time,
			Message: fmt.Sprintf("its containers are ready, and its readiness gate %s is not", gate.ConditionType),
			Do:      "Find who sets that condition, such as the controller of a load balancer, and its logs"}
		if c != nil && c.Message != "" {
			out.Message += ": " + shortened(c.Message, "")
		}
		return out
	}
	return nil
}

// configError is the reason of a waiting container if an object that it names was missing.
const configError = "CreateContainerConfigError"

// waitingContainer says why a container does not start; nil when that is not told.
func (w *World) waitingContainer(p *corev1.Pod, kind string, s *corev1.ContainerStatus) *Cause {
	waiting := s.State.Waiting
	if waiting == nil {
		return nil
	}
	what := fmt.Sprintf("%s %s", kind, s.Name)
	c := &Cause{Of: OfContainer, Code: waiting.Reason}
	switch waiting.Reason {
	case "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable", "SignatureValidationFailed":
		c.Message = fmt.Sprintf("the image %s of %s can't be pulled: %s", s.Image, what, shortened(waiting.Message, waiting.Reason))
		c.Do = "Check the image's name and tag, that its registry can be reached from " + p.Spec.NodeName + ", and the pod's imagePullSecrets"
	case "CrashLoopBackOff":
		c.Message = fmt.Sprintf("%s ends again and again, %s", what, ending(p, s))
		c.Do = fmt.Sprintf("Read what it said last: kubectl logs -n %s %s -c %s --previous", p.Namespace, p.Name, s.Name)
		if outOfMemory(s) {
			c.Do = memoryAdvice(p, s.Name)
		}
	case configError:
		c.Message = fmt.Sprintf("%s can't be made: %s", what, shortened(waiting.Message, "its configuration is wrong"))
		c.Do = "Correct what the message names; the kubelet tries again by itself"
		if m := missingObject.FindStringSubmatch(waiting.Message); m != nil {
			c.Do = missingDo(p.Namespace, m[1])
			if w.Evidence.Named[NamedObject{m[1], p.Namespace, m[2]}].Exists {
				c.Message += "; it exists now"
				c.Do = "Wait: the kubelet tries again by itself"
			}
		}
	case "CreateContainerError", "RunContainerError", "PostStartHookError":
		c.Message = fmt.Sprintf("%s can't be started: %s", what, shortened(waiting.Message, waiting.Reason))
		c.Do = fmt.Sprintf("Check the container's command, mounts and security context: kubectl describe pod -n %s %s", p.Namespace, p.Name)
	default:
		return nil // ContainerCreating, PodInitializing: the kubelet is about it
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		c.Since = t.FinishedAt.Time
	}
	return c
}

// ending says how a container ended last.
func ending(p *corev1.Pod, s *corev1.ContainerStatus) string {
	t := s.LastTerminationState.Terminated
	switch {
	case t == nil:
		return fmt.Sprintf("%d times so far", s.RestartCount)
	case outOfMemory(s) && !hasMemoryLimit(p, s.Name):
		return fmt.Sprintf("%d times so far: it has no memory limit of its own, and was killed as its node, or its pod, ran out of memory (OOMKilled)", s.RestartCount)
	case outOfMemory(s):
		return fmt.Sprintf("%d times so far: it uses more memory than its limit (OOMKilled)", s.RestartCount)
	case t.Message != "":
		return fmt.Sprintf("%d times so far, last with exit code %d: %s", s.RestartCount, t.ExitCode, shortened(t.Message, ""))
	}
	return fmt.Sprintf("%d times so far, last with exit code %d", s.RestartCount, t.ExitCode)
}

func outOfMemory(s *corev1.ContainerStatus) bool {
	return s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.Reason == "OOMKilled"
}

// hasMemoryLimit says whether a container of a pod has a limit of its own.
func hasMemoryLimit(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		_, has := c.Resources.Limits[corev1.ResourceMemory]
		return c.Name == name && has
	})
}

// memoryAdvice is what to do about a container that runs out of memory.
func memoryAdvice(p *corev1.Pod, container string) string {
	if hasMemoryLimit(p, container) {
		return "Raise its resources.limits.memory, or have it use less"
	}
	return fmt.Sprintf("Give it a memory request of what it needs, so that it goes where there is as much, and see what else uses the memory: kubectl describe node %s", p.Spec.NodeName)
}

// notReadyContainer says which running container fails its probe.
func (w *World) notReadyContainer(p *corev1.Pod) *Cause {
	if p.Status.Phase != corev1.PodRunning {
		return nil
	}
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready && s.State.Running != nil })
	if i < 0 {
		return nil
	}
	s := &p.Status.ContainerStatuses[i]
	c := &Cause{Of: OfContainer, Code: "NotReady", Since: s.State.Running.StartedAt.Time,
		Message: fmt.Sprintf("container %s runs and has not become ready", s.Name),
		Do:      fmt.Sprintf("Read what it says: kubectl logs -n %s %s -c %s", p.Namespace, p.Name, s.Name),
	}
	if e := w.Evidence.lastEvent(p.UID, "Unhealthy", "ProbeError"); e != nil && !eventTime(e).Before(c.Since) {
		c.Message += ": " + shortened(e.Message, "")
	}
	return c
}

// mountCause says what the kubelet can't set up for a bound pod, by its events;
// nil when it has not complained, or has started the pod since.
func (w *World) mountCause(p *corev1.Pod) *Cause {
	if started := startedAt(p); !started.IsZero() {
		return nil
	}
	e := w.Evidence.lastEvent(p.UID, "FailedMount", "FailedMapVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer", "FailedAttachVolume")
	if e != nil && !w.overcome(p, e) {
		return w.mountEvent(p, e)
	}
	if c := w.missingCause(p); c != nil {
		return c
	}
	return w.startingCause(p)
}

// overcome says whether what an event complains of has been done since: a kubelet goes on to
// images once the volumes are mounted and the sandbox is made.
func (w *World) overcome(p *corev1.Pod, e *corev1.Event) bool {
	if e.Reason == "FailedCreatePodContainer" {
		return false
	}
	if begun := w.imagesBegun(p); !begun.IsZero() {
		return !eventTime(e).After(begun)
	}
	if e.Reason != "FailedAttachVolume" {
		return false
	}
	if m := volumeNamed.FindStringSubmatch(e.Message); m != nil {
		if pv := w.Snapshot.PersistentVolume(m[1]); pv != nil && w.Arbiter.SafeToMount(w.Snapshot, pv.Volume, ledger.NodeName(p.Spec.NodeName)) {
			return true // it is attached there by now
		}
	}
	attached := w.Evidence.lastEvent(p.UID, "SuccessfulAttachVolume")
	return attached != nil && eventTime(attached).After(eventTime(e))
}

// imagesBegun is when the kubelet had mounted a pod's volumes and made its sandbox; zero where
// nothing shows that it has.
func (w *World) imagesBegun(p *corev1.Pod) time.Time {
	if made := podCondition(p, corev1.PodReadyToStartContainers); made != nil {
		if made.Status == corev1.ConditionTrue {
			return made.LastTransitionTime.Time
		}
		return time.Time{}
	}
	if e := w.Evidence.lastEvent(p.UID, "Pulling", "Pulled", "Created"); e != nil {
		return eventTime(e)
	}
	return time.Time{}
}

// startingCause says what the kubelet is about in a pod whose volumes are mounted and whose
// sandbox is made, once that lasts; nil where that is not so.
func (w *World) startingCause(p *corev1.Pod) *Cause {
	for i := range p.Status.InitContainerStatuses {
		s := &p.Status.InitContainerStatuses[i]
		if s.State.Running == nil || s.Started != nil && *s.Started && restartsAlways(p, s.Name) {
			continue
		}
		return &Cause{Of: OfContainer, Code: "InitContainerRuns", Since: s.State.Running.StartedAt.Time,
			Message: fmt.Sprintf("its init container %s runs and has not ended; its volumes are mounted", s.Name),
			Do:      fmt.Sprintf("Read what it waits for: kubectl logs -n %s %s -c %s", p.Namespace, p.Name, s.Name)}
	}
	begun := w.imagesBegun(p)
	if begun.IsZero() || w.Now.Sub(begun) < imagePatience {
		return nil
	}
	c := &Cause{Of: OfContainer, Code: "ContainerCreating", Since: begun,
		Message: "its volumes are mounted and its sandbox is made; its containers are not started yet: usually an image is being pulled",
		Do:      fmt.Sprintf("See what the kubelet is about: kubectl describe pod -n %s %s. Large images take their time", p.Namespace, p.Name)}
	if e := w.Evidence.lastEvent(p.UID, "Pulling", "Pulled"); e != nil && e.Reason == "Pulling" {
		c.Message = "its volumes are mounted, and an image is being pulled: " + shortened(e.Message, "")
	}
	return c
}

// imagePatience is for how long containers may take to start before that is told.
const imagePatience = 30 * time.Second

// restartsAlways says whether an init container is a sidecar, which need not end.
func restartsAlways(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// Patterns of the kubelet's own words (pkg/volume, pkg/kubelet/volumemanager).
var (
	missingObject = regexp.MustCompile(`(configmap|secret|serviceaccount)s? "([^"]+)" not found`)
	volumeNamed   = regexp.MustCompile(`for volume "([^"]+)"`)
	setUpOf       = regexp.MustCompile(`for volume "([^"]+)"\s*:\s*(.*)`)
	notRegistered = regexp.MustCompile(`driver name (\S+) not found in the list of registered CSI drivers`)
)

func (w *World) mountEvent(p *corev1.Pod, e *corev1.Event) *Cause {
	c := &Cause{Of: OfMount, Code: e.Reason, Since: firstTime(e), Message: shortened(e.Message, e.Reason)}
	if m := missingObject.FindStringSubmatch(e.Message); m != nil {
		c.Code, c.Do = missingCode(m[1]), missingDo(p.Namespace, m[1])
		c.Message = fmt.Sprintf("it needs the %s %s, which does not exist in namespace %s", m[1], m[2], p.Namespace)
		if w.Evidence.Named[NamedObject{m[1], p.Namespace, m[2]}].Exists {
			c.Message = fmt.Sprintf("the %s %s did not exist when the kubelet last tried to mount it, and exists now", m[1], m[2])
			c.Do = "Wait: the kubelet tries again by itself, within two minutes"
		}
		return c
	}
	if m := notRegistered.FindStringSubmatch(e.Message); m != nil {
		c.Code = "NodePluginDown"
		c.Message = fmt.Sprintf("the node plugin of driver %s does not run at %s: the kubelet can't mount its volumes", m[1], p.Spec.NodeName)
		c.Do = fmt.Sprintf("Look at the driver's DaemonSet pod there: kubectl get pods -A --field-selector spec.nodeName=%s", p.Spec.NodeName)
		return c
	}
	switch e.Reason {
	case "FailedCreatePodSandBox":
		c.Message = "the pod's sandbox can't be made, usually because of the network plugin: " + shortened(e.Message, "")
		c.Do = "Look at the network plugin's pod at " + p.Spec.NodeName + " and the kubelet's log there"
	case "FailedAttachVolume":
		c.Of, c.Do = OfVolume, "See who has the volume: kubectl moorage explain pvc NAME"
	default:
		volume := ""
		if same := w.sameVolume(p); same != nil && strings.Contains(e.Message, "unmounted volumes=") {
			same.Since = c.Since
			return same
		}
		if m := setUpOf.FindStringSubmatch(e.Message); m != nil {
			volume = m[1]
			c.Message = fmt.Sprintf("volume %s can't be mounted at %s: %s", m[1], p.Spec.NodeName, shortened(m[2], ""))
		}
		c.Do = w.mountAdvice(p, volume)
	}
	return c
}

// wordsOf bounds a text of others, so that one line stays one.
const wordsOf = 240

// wordsOfPolicy bounds the words of a policy that refuses, which say what to do.
const wordsOfPolicy = 800

// shortened is a text on one line, cut where it is long; other if it is empty.
func shortened(text, other string) string { return shortenedTo(text, other, wordsOf) }

// shortenedTo is shortened with a bound of its own, in letters.
func shortenedTo(text, other string, bound int) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return other
	}
	if runes := []rune(text); len(runes) > bound {
		return string(runes[:bound]) + "…"
	}
	return text
}

// createdFor is for how long a pod has been there.
func (w *World) createdFor(p *corev1.Pod) time.Duration { return w.Now.Sub(p.CreationTimestamp.Time) }
