// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagevolume "k8s.io/component-helpers/storage/volume"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// claimsCause says what is wrong with the first of a pod's claims that is missing
// or has no volume yet; nil when none is to blame.
func (w *World) claimsCause(p *corev1.Pod) *Cause {
	if w.unseen("persistentvolumeclaims") {
		return nil
	}
	for _, v := range p.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = p.Name + "-" + v.Name
		default:
			continue
		}
		claim := w.Claim(p.Namespace, name)
		if claim == nil && v.Ephemeral == nil {
			return &Cause{Of: OfClaim, Code: string(arbiter.ClaimMissing), Since: p.CreationTimestamp.Time,
				Message: fmt.Sprintf("it uses the claim %s, which does not exist in namespace %s", name, p.Namespace),
				Do:      fmt.Sprintf("Create the claim, or correct its name in the pod: kubectl get pvc -n %s", p.Namespace)}
		}
		if claim != nil {
			if c := w.claimCause(claim, p.Spec.NodeName != ""); c != nil {
				return c
			}
		}
	}
	return nil
}

// claimCause says why a claim has no volume; nil while it only waits for a pod.
func (w *World) claimCause(claim *corev1.PersistentVolumeClaim, placed bool) *Cause {
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		return nil
	case claim.Spec.VolumeName != "":
		return w.preboundCause(claim)
	}
	c := &Cause{Of: OfClaim, Since: claim.CreationTimestamp.Time}
	if bad := w.badClass(claim); bad != nil {
		return bad
	}
	e := w.Evidence.lastEvent(claim.UID, "ProvisioningFailed", "ProvisioningSucceeded")
	if e != nil && e.Reason == "ProvisioningFailed" {
		c.Code, c.Since = "ProvisioningFailed", firstTime(e)
		c.Message = fmt.Sprintf("no volume can be made for claim %s: %s", claim.Name, shortened(e.Message, ""))
		c.Do = "Read the message; the log of the driver's external-provisioner has more"
		return c
	}
	if unchosen := w.unchosenCause(claim); placed && unchosen != nil {
		return unchosen
	}
	class := w.class(claim)
	if tries := w.Evidence.lastEvent(claim.UID, "Provisioning"); tries != nil && w.Now.Sub(eventTime(tries)) < kubeletPatience {
		return nil // its provisioner has begun
	}
	immediate := class != nil && (class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate)
	if class != nil && class.Provisioner == noProvisioner && (immediate || placed) {
		return w.byHandCause(claim)
	}
	if immediate && w.Now.Sub(claim.CreationTimestamp.Time) > time.Minute || placed && w.Now.Sub(claim.CreationTimestamp.Time) > 5*time.Minute {
		if is, since := w.leads(kubeControllerManager); is == lapsed && claim.Annotations[storagevolume.AnnStorageProvisioner] == "" {
			return &Cause{Of: OfComponent, Code: controllerDown, Since: since,
				Message: fmt.Sprintf("claim %s waits for a volume, and kube-controller-manager, which asks the provisioner for it, is down, by its Lease in kube-system", claim.Name),
				Do:      "See why: kubectl get pods -n kube-system -l component=kube-controller-manager, then the logs. Where the control plane is managed, ask its provider"}
		}
		c.Code = "ProvisionerSilent"
		c.Message = fmt.Sprintf("claim %s waits for a volume, and the provisioner %s says nothing", claim.Name, provisionerOf(class))
		c.Do = "Does the driver's controller pod run, with its external-provisioner? kubectl get pods -A | grep -i csi"
		return c
	}
	return nil
}

// badClass says that the class of an unbound claim does not exist; nil when it does.
func (w *World) badClass(claim *corev1.PersistentVolumeClaim) *Cause {
	if w.unseen("storageclasses.storage.k8s.io") || claim.Spec.VolumeName != "" {
		return nil
	}
	list := "kubectl get storageclass"
	switch name := claim.Spec.StorageClassName; {
	case name == nil && w.defaultClass() == nil:
		return &Cause{Of: OfClaim, Code: "NoDefaultClass", Since: claim.CreationTimestamp.Time,
			Message: fmt.Sprintf("claim %s names no StorageClass, and the cluster has no default one", claim.Name),
			Do:      "Name a StorageClass in the claim, or mark one as the default: " + list}
	case name != nil && *name == "":
		return w.byHandCause(claim)
	case name != nil && w.class(claim) == nil && w.unseen("persistentvolumes"):
		return nil // the class may be one of PersistentVolumes, which needs no object
	case name != nil && w.class(claim) == nil:
		if free, all := w.volumesOfClass(*name); all > 0 {
			return &Cause{Of: OfClaim, Code: string(arbiter.ClaimUnbound), Since: claim.CreationTimestamp.Time,
				Message: fmt.Sprintf("claim %s asks for class %s, whose PersistentVolumes are made by hand: none that is free suits it (%d there, %d free)", claim.Name, *name, all, free),
				Do:      "Compare size, access modes, selector and node affinity with the claim's: kubectl get pv -o wide"}
		}
		return &Cause{Of: OfClaim, Code: "ClassMissing", Since: claim.CreationTimestamp.Time,
			Message: fmt.Sprintf("claim %s asks for StorageClass %s, which does not exist", claim.Name, *name),
			Do:      "Create the class, or make the claim anew with one that exists: " + list}
	}
	return nil
}

// noProvisioner is the provisioner of a class if a person makes its PersistentVolumes.
const noProvisioner = "kubernetes.io/no-provisioner"

// byHandCause is for a claim that wants no StorageClass, or one without a provisioner: only a
// PersistentVolume that somebody makes becomes its volume.
func (w *World) byHandCause(claim *corev1.PersistentVolumeClaim) *Cause {
	c := &Cause{Of: OfClaim, Code: string(arbiter.ClaimUnbound), Since: claim.CreationTimestamp.Time,
		Message: fmt.Sprintf("claim %s wants no StorageClass (storageClassName: \"\"), so that no provisioner makes a volume for it: it is bound to a PersistentVolume that is made by hand", claim.Name),
		Do:      "Make a PersistentVolume for it, or make the claim anew with a StorageClass. Compare those that there are: kubectl get pv -o wide"}
	name := ""
	if claim.Spec.StorageClassName != nil {
		name = *claim.Spec.StorageClassName
	}
	if class := w.class(claim); class != nil {
		name = class.Name
		c.Message = fmt.Sprintf("claim %s asks for class %s, which has no provisioner: it is bound to a PersistentVolume that is made by hand", claim.Name, name)
	}
	for _, pv := range w.PersistentVolumes {
		if r := pv.Spec.ClaimRef; r != nil && r.Namespace == claim.Namespace && r.Name == claim.Name && (r.UID == "" || r.UID == claim.UID) {
			c.Message += fmt.Sprintf(". PersistentVolume %s is kept for it, and is not bound to it", pv.Name)
			c.Do = fmt.Sprintf("Compare size, access modes, volume mode and class of the two: kubectl describe pvc -n %s %s; kubectl describe pv %s", claim.Namespace, claim.Name, pv.Name)
			return c
		}
	}
	if !w.unseen("persistentvolumes") {
		free, all := w.volumesOfClass(name)
		c.Message += fmt.Sprintf(", and none that is free suits it (%d there, %d free)", all, free)
	}
	return c
}

// unchosenCause is for a claim whose volume is made where its first pod is placed, and whose
// pod was made with its node: no scheduler looks at that pod. Nil for any other.
func (w *World) unchosenCause(claim *corev1.PersistentVolumeClaim) *Cause {
	if !w.bindsLate(claim) {
		return nil
	}
	return &Cause{Of: OfClaim, Code: string(arbiter.ClaimUnbound), Since: claim.CreationTimestamp.Time,
		Message: fmt.Sprintf("claim %s gets its volume where a scheduler places its pod (WaitForFirstConsumer), and the pod was made with spec.nodeName: no scheduler looks at it, and nobody chooses a node for the claim", claim.Name),
		Do:      "Make the pod anew without spec.nodeName, and with the nodeSelector kubernetes.io/hostname in its place"}
}

// volumesOfClass counts the PersistentVolumes of a class, and those of them that are free.
func (w *World) volumesOfClass(name string) (free, all int) {
	for _, pv := range w.PersistentVolumes {
		if pv.Spec.StorageClassName != name {
			continue
		}
		all++
		if pv.Spec.ClaimRef == nil && pv.DeletionTimestamp == nil {
			free++
		}
	}
	return free, all
}

func (w *World) class(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim.Spec.StorageClassName == nil {
		return w.defaultClass()
	}
	for _, c := range w.Classes {
		if c.Name == *claim.Spec.StorageClassName {
			return c
		}
	}
	return nil
}

func (w *World) defaultClass() *storagev1.StorageClass {
	for _, c := range w.Classes {
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return c
		}
	}
	return nil
}

func provisionerOf(c *storagev1.StorageClass) string {
	if c == nil {
		return "of its class"
	}
	return c.Provisioner
}

// unseen says whether a kind could not be listed in every namespace.
func (w *World) unseen(resource string) bool {
	for _, u := range w.Unseen {
		if u.Resource == resource && u.Namespace == "" {
			return true
		}
	}
	return false
}

// partUnseen says whether a kind could not be listed in some namespaces, or in any.
func (w *World) partUnseen(resource string) bool {
	return slices.ContainsFunc(w.Unseen, func(u Unseen) bool { return u.Resource == resource })
}

// The codes of components without which no volume comes or goes.
const (
	controllerDown = "ControllerDown"
	attacherDown   = "AttacherDown"
)

// componentCause says that what a volume waits for can't happen, because the
// component that does it is down; nil when it runs or nothing is known of it.
func (w *World) componentCause(reason *Reason, driver string) *Cause {
	switch arbiter.CallOf(codeOf(reason)) {
	case arbiter.CallAttach, arbiter.CallDetach:
		if c := w.AttacherDown(driver); c != nil {
			if code := codeOf(reason); code == arbiter.AttachFailed || code == arbiter.DetachFailed {
				c.Message += "; before that: " + reason.Message // the driver's own words
			}
			return c
		}
	case arbiter.CallNone: // no call of an attacher's is waited for
	}
	if c := w.managerDown(codeOf(reason)); c != nil {
		return c
	}
	if !w.waitsForController(codeOf(reason)) {
		return nil
	}
	if is, since := w.leads(v1alpha1.ControllerName); is == lapsed {
		what := "granted, attached or detached"
		if w.Arbiter.Cooperative {
			what = "granted"
		}
		message := "moorage-controller is down: nothing is " + what + " meanwhile; pods that run are untouched"
		if codeOf(reason) == arbiter.NodeUnreachable && reason.Message != "" {
			waits, _, _ := strings.Cut(reason.Message, ". ")
			message += ". What it has to do: " + waits
		}
		return &Cause{Of: OfComponent, Code: controllerDown, Since: since, Message: message,
			Do: "See why: kubectl get pods -A -l app.kubernetes.io/component=controller, then the logs"}
	}
	return nil
}

// managerDown says that kube-controller-manager is down where it attaches and detaches what a
// reason waits for; nil where it runs, where Moorage does that, or where it has no Lease that
// can be seen, as in many managed clusters.
func (w *World) managerDown(code ledger.Code) *Cause {
	if w.moorageDetaches() || code == arbiter.NotGranted || code != arbiter.NodeUnreachable && !arbiter.Transient(code) {
		return nil
	}
	is, since := w.leads(kubeControllerManager)
	if is != lapsed {
		return nil
	}
	return &Cause{Of: OfComponent, Code: controllerDown, Since: since,
		Message: "kube-controller-manager is down, by its Lease in kube-system: no volume is attached or detached meanwhile; pods that run are untouched",
		Do:      "See why: kubectl get pods -n kube-system -l component=kube-controller-manager, then the logs. Where the control plane is managed, ask its provider"}
}

// AttacherDown says that the external-attacher of a driver is down; nil when it runs or nothing
// is known of it.
func (w *World) AttacherDown(driver string) *Cause {
	is, since := w.leads(attacherLease(driver))
	if is != lapsed {
		return nil
	}
	return &Cause{Of: OfComponent, Code: attacherDown, Since: since,
		Message: fmt.Sprintf("the attacher of driver %s is down, so that nobody attaches or detaches its volumes", driver),
		Do:      "Look at the driver's controller pod, container csi-attacher: kubectl get pods -A | grep -i csi"}
}

// waitsForController says whether what a reason waits for ends by a deed of
// moorage-controller. In Cooperative mode it only grants: kube-controller-manager attaches and
// detaches.
func (w *World) waitsForController(code ledger.Code) bool {
	switch {
	case !w.Served() || code == arbiter.ClaimUnbound: // which is a provisioner's to end
		return false
	case w.Arbiter.Cooperative:
		return code == arbiter.NotGranted
	}
	return code == arbiter.NodeUnreachable || arbiter.Transient(code)
}

// Served says whether the cluster serves Moorage's kinds.
func (w *World) Served() bool {
	for _, u := range w.Unseen {
		if u.Missing && strings.HasSuffix(u.Resource, "."+v1alpha1.GroupName) {
			return false
		}
	}
	return true
}

// attacherLease is the name of the Lease of a driver's external-attacher
// (csi-lib-utils/leaderelection: characters that a name can't have become "-").
func attacherLease(driver string) string {
	clean := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		if r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}
	return "external-attacher-leader-" + strings.Map(clean, driver)
}
