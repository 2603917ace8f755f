// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldWrite is a write of one of an object's fields, as the API server notes in
// managedFields: by whom, and when, by the API server's clock, to the second; the zero time
// where it does not say.
type fieldWrite struct {
	manager string
	at      time.Time
}

// lastWrite finds the last write of a field by its JSON name, such as renewTime; empty stands
// for any field. Of several managers who own it the last one counts. False where the API server
// has noted none.
func lastWrite(object metav1.Object, field string) (fieldWrite, bool) {
	return lastWriteOf(object, func(f *metav1.ManagedFieldsEntry) bool {
		return field == "" || f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:`+field+`"`)
	})
}

// lastStatusWrite finds the last write of an object's status, as lastWrite does.
func lastStatusWrite(object metav1.Object) (fieldWrite, bool) {
	return lastWriteOf(object, func(f *metav1.ManagedFieldsEntry) bool { return f.Subresource == "status" })
}

func lastWriteOf(object metav1.Object, counts func(*metav1.ManagedFieldsEntry) bool) (last fieldWrite, ok bool) {
	fields := object.GetManagedFields()
	for i := range fields {
		f := &fields[i]
		at := time.Time{}
		if f.Time != nil {
			at = f.Time.Time
		}
		if counts(f) && (!ok || at.After(last.at)) {
			last, ok = fieldWrite{f.Manager, at}, true
		}
	}
	return last, ok
}
