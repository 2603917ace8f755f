// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// SeeAttachment takes a VolumeAttachment of any driver.
func (e *engine) SeeAttachment(va *storagev1.VolumeAttachment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.look(e.sawAttachment(va)...)
}

func (e *engine) LoseAttachment(va *storagev1.VolumeAttachment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.look(e.lostAttachment(va)...)
}

func (e *engine) SeeVolume(pv *corev1.PersistentVolume) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.look(e.sawVolume(pv)...)
	e.lookAtVolume(pv.Name)
}

func (e *engine) LoseVolume(pv *corev1.PersistentVolume) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.store.loseVolume(pv.Name, pv.UID) {
		return
	}
	e.forgetVolume(pv.Name)
	e.look(e.readAgain(e.store.byVolume[pv.Name])...)
}

func (e *engine) SeeNode(n *storagev1.CSINode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.store.nodes[n.Name] = n
	e.look(e.readAgain(e.store.byNode[n.Name])...)
}

func (e *engine) LoseNode(n *storagev1.CSINode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.store.nodes, n.Name)
	e.look(e.readAgain(e.store.byNode[n.Name])...)
}

func (e *engine) sawAttachment(va *storagev1.VolumeAttachment) []decide.VolumeID {
	replaced, fresh := e.store.seeAttachment(va)
	if !fresh {
		return nil
	}
	var touched []decide.VolumeID
	if replaced != "" {
		touched = e.tracker.Lose(string(replaced), e.now())
	}
	if a, ok := e.read(va); ok {
		touched = append(touched, e.tracker.See(a, e.now())...)
	}
	e.tidy(string(replaced))
	return touched
}

func (e *engine) lostAttachment(va *storagev1.VolumeAttachment) []decide.VolumeID {
	if !e.store.loseAttachment(va.Name, va.UID) {
		return nil
	}
	touched := e.tracker.Lose(string(va.UID), e.now())
	e.tidy(string(va.UID))
	if pv := va.Spec.Source.PersistentVolumeName; pv != nil {
		e.lookAtVolume(*pv)
	}
	return touched
}

func (e *engine) sawVolume(pv *corev1.PersistentVolume) []decide.VolumeID {
	if !e.store.seeVolume(pv) {
		return nil
	}
	return e.readAgain(e.store.byVolume[pv.Name])
}

func (e *engine) readAgain(names map[string]struct{}) []decide.VolumeID {
	var touched []decide.VolumeID
	for name := range names {
		if a, ok := e.read(e.store.attachments[name]); ok {
			touched = append(touched, e.tracker.See(a, e.now())...)
		}
	}
	slices.Sort(touched)
	return slices.Compact(touched)
}

// read keeps the calls' inputs for a detach after the PersistentVolume is lost or remade.
func (e *engine) read(va *storagev1.VolumeAttachment) (decide.Attachment, bool) {
	if va == nil || va.Spec.Attacher != e.config.Reader.Driver {
		return decide.Attachment{}, false
	}
	a, call := e.config.Reader.Attachment(va, e.store)
	kept, known := e.calls[a.UID]
	if a.Volume != "" && e.otherThan(&a, call, kept, known) {
		// The volume stays known, or follows from its name.
		a.Volume = ""
		a.NoPublish = decide.Reason{Message: fmt.Sprintf("PersistentVolume %s is another volume's now: this VolumeAttachment was made for %s",
			call.PersistentVolume, cmp.Or(kept.Handle, "one that nobody can tell"))}
		a.NoUnpublish = a.NoPublish
	}
	if a.Volume != "" {
		e.calls[a.UID] = call
	} else if known {
		a.NoUnpublish, a.NeedsSecret = decide.Reason{}, kept.Secret != nil
	}
	return a, true
}

// otherThan: the attachment was made for another volume than its PersistentVolume's present one. An unseen
// attachment's name decides, if Kubernetes gives such names. An in-tree volume may have another name and be
// the same.
func (e *engine) otherThan(a *decide.Attachment, call, kept objects.Call, known bool) bool {
	if known && (a.Stamped || a.Attached) && !kept.Migrated && call.Handle != kept.Handle {
		return true
	}
	v := ledger.VolumeID{Driver: e.config.Reader.Driver, Handle: call.Handle}
	return call.PersistentVolume != "" && !call.Migrated && ledger.NamesAnother(a.Name, v, ledger.NodeName(a.Node))
}
