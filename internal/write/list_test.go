// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/alloctest"
)

// The cost is the list's objects plus its volumes, not their product.
func TestListForMany(t *testing.T) {
	volume := func(i int) ledger.VolumeID { return ledger.VolumeID{Driver: "disk", Handle: fmt.Sprint(i)} }
	list := func(objects, asking int) (f findings) {
		names := namesAt{known: map[ledger.NodeName]map[string]ledger.VolumeID{}}
		for i := range asking {
			names.volumes = append(names.volumes, volume(i))
		}
		f = newFindings(append(names.volumes, ledger.VolumeID{})) // and a request for everything
		for i := range objects {
			f.add(names.attachmentOf(&storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(volume(i), "n")},
				Spec:       storagev1.VolumeAttachmentSpec{Attacher: "disk", NodeName: "n"},
			}))
		}
		return f
	}
	const many = 300
	f := list(many, many/2)
	for i := range many / 2 {
		if len(f.facts[i]) != 1 || f.facts[i][0].(ledger.Attachment).Name != ledger.AttachmentName(volume(i), "n") {
			t.Errorf("%s is answered with %v", volume(i), f.facts[i])
		}
	}
	if n := len(f.facts[many/2]); n != many {
		t.Errorf("who asks for everything gets %d of %d", n, many)
	}
	cost := func(objects, asking int) uint64 { return alloctest.Bytes(func() { list(objects, asking) }) }
	cost(1, 1)
	if both, apart := cost(many, many), cost(many, 1)+cost(1, many); both > 2*apart {
		t.Errorf("%d bytes for %d objects and as many volumes, %d for each by itself", both, many, apart)
	}
}
