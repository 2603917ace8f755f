// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"sync/atomic"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/test/apitest"
)

// Pauses double from 0.2 s: the tenth attempt comes after more than a minute and a half.
const maxAttempts = 10

var attachments = schema.GroupResource{Group: storagev1.GroupName, Resource: "volumeattachments"}

func (c *cluster) refuse(request string, refusal error) *atomic.Int32 {
	var attempts atomic.Int32
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.String() == request {
			attempts.Add(1)
			return refusal
		}
		serve()
		return nil
	})
	return &attempts
}

func (c *cluster) goesOn(attempts *atomic.Int32) {
	c.t.Helper()
	c.until("it is refused", func() bool { return attempts.Load() > 0 })
	for _, other := range names("other", 20) {
		c.disk(other)
		c.pod(other, "n1", other, false)
		c.until(other+" is attached", func() bool { a := c.attachment(other, "n1"); return a != nil && a.Status.Attached })
	}
	if n := attempts.Load(); n > maxAttempts {
		c.t.Errorf("%d attempts at a write that is refused, want %d at most", n, maxAttempts)
	}
}

// The attempt's own changes do not cut the pauses short; news from outside does.
func TestRefusedCreation(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(attachments, va("data", "n1"), errors.New("denied by a policy")),
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Group: storagev1.GroupName, Kind: "VolumeAttachment"}, va("data", "n1"), nil),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 100, "n1")
			c.disk("data")
			attempts := c.refuse("create volumeattachments "+va("data", "n1"), refusal)
			c.lead(1)
			c.pod("db", "n1", "data", false)
			c.goesOn(attempts)
			c.Intercept(nil)
			c.pod("db2", "n1", "data", false)
			c.until("it is attached once nobody refuses it", func() bool { return c.reported("data", "n1") })
		})
	}
}
