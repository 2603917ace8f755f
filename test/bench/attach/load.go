// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/test/internal/pace"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	nodes = 10
	hands = 64
	// patience bounds unmeasured waits.
	patience       = 6 * time.Minute
	immediateClass = "disk-immediate"
)

type load struct {
	*sandbox.Env
	volumes int
	stamped bool // as Moorage's controller makes them
}

func claimName(i int) string { return fmt.Sprintf("volume-%04d", i) }

func (l load) provision(ctx context.Context) error {
	err := pace.Rate{Hands: hands}.Each(ctx, l.volumes, func(ctx context.Context, i int) error {
		claim := sandbox.Claim(claimName(i), corev1.ReadWriteOnce)
		claim.Spec.StorageClassName = new(immediateClass)
		return l.CreateClaim(ctx, claim)
	})
	if err != nil {
		return err
	}
	return l.EventuallyWithin(ctx, patience, "all claims are bound", func() error {
		bound := 0
		for _, claim := range l.View.Claims(l.Namespace) {
			if pv := l.View.Volume(claim.Spec.VolumeName); claim.Status.Phase == corev1.ClaimBound && pv != nil {
				bound++
			}
		}
		if bound < l.volumes {
			return fmt.Errorf("%d of %d are", bound, l.volumes)
		}
		return nil
	})
}

func attachmentName(i int) string { return "bench-" + strconv.Itoa(i) }

func (l load) attach(ctx context.Context) error {
	return pace.Rate{Hands: hands}.Each(ctx, l.volumes, func(ctx context.Context, i int) error {
		claim := l.View.Claim(l.Namespace, claimName(i))
		if claim == nil {
			return fmt.Errorf("claim %s is gone", claimName(i))
		}
		_, err := l.Client.StorageV1().VolumeAttachments().Create(ctx, l.attachment(i, claim.Spec.VolumeName), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create a VolumeAttachment: %w", err)
		}
		return nil
	})
}

func (l load) attachment(i int, pv string) *storagev1.VolumeAttachment {
	node := sandbox.NodeName(1 + i%nodes)
	a := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName(i)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: sandbox.DriverName, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
		},
	}
	if l.stamped {
		a.Finalizers = []string{convert.AttacherFinalizer(sandbox.DriverName)}
		a.Annotations = map[string]string{
			convert.AnnotationNodeID: diskapi.NodeID(node), v1alpha1.AnnotationTransitions: "1",
		}
	}
	return a
}

func (l load) attached() int {
	n := 0
	for _, a := range l.View.Attachments() {
		if a.Status.Attached {
			n++
		}
	}
	return n
}

func (l load) detach(ctx context.Context) error {
	return pace.Rate{Hands: hands}.Each(ctx, l.volumes, func(ctx context.Context, i int) error {
		if err := l.Client.StorageV1().VolumeAttachments().Delete(ctx, attachmentName(i), metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete a VolumeAttachment: %w", err)
		}
		return nil
	})
}

func (l load) detached() int { return l.volumes - len(l.View.Attachments()) }

// The deadline is no error; until returns how far the count came.
func (l load) until(ctx context.Context, deadline time.Duration, count func() int) (int, error) {
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := l.View.Await(limited, func() error {
		if n := count(); n < l.volumes {
			return fmt.Errorf("%d of %d", n, l.volumes)
		}
		return nil
	})
	switch {
	case err == nil:
		return l.volumes, nil
	case ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded):
		return count(), nil
	}
	return count(), err
}
