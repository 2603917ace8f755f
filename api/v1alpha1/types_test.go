// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestRoundTripThroughTheSchema(t *testing.T) {
	crds := loadCRDs(t)
	ticket := manualTicket()
	ticket.Status = v1alpha1.VolumeTicketStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonPending, Message: "m", ObservedGeneration: 1, LastTransitionTime: metav1.Unix(1, 0)}},
		Volumes:           []v1alpha1.TicketVolumeStatus{{Claim: "data", PersistentVolume: "pv-7", Transitions: 7}},
		Epoch:             4,
		TTLElapsedSeconds: 5,
	}
	full := (&v1alpha1.AttachPolicySpec{}).WithDefaults()
	full.Driver, full.LiveMigration = "disk.example.com", new(true)
	full.Workers, full.Slots.Max = new(int32(20)), new(int32(8))
	full.ForceDetach.AfterUnreachable = &metav1.Duration{Duration: time.Hour}
	policy := &v1alpha1.AttachPolicy{TypeMeta: typeMeta(v1alpha1.KindAttachPolicy), Spec: full}
	ofClass := policy.DeepCopy()
	ofClass.Spec.StorageClassName, ofClass.Spec.Slots, ofClass.Spec.Workers = "fast", nil, nil

	for _, obj := range []runtime.Object{ticket, heldVolume(), policy, ofClass, nodeMountReport()} {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		sent := asMap(t, obj)
		if errs := crds[kind].admit(sent, nil); len(errs) > 0 {
			t.Fatalf("%s: %v", kind, errs.ToAggregate())
		}
		back := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
		raw, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, back); err != nil {
			t.Fatal(err)
		}
		if want, got := asMap(t, obj), asMap(t, back); !reflect.DeepEqual(want, got) {
			t.Errorf("%s: sent %v, came back %v", kind, want, got)
		}
	}
}

func TestPrinterColumns(t *testing.T) {
	crds := loadCRDs(t)
	ticket := manualTicket()
	ticket.Status.State = "Attaching"
	ticket.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.TicketSatisfied, Status: metav1.ConditionUnknown, Reason: "No"},
		{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonGranted},
	}
	for kind, want := range map[string]struct {
		object       any
		names, cells []string
	}{
		v1alpha1.KindVolumeTicket: {ticket,
			[]string{"Name", "Type", "Node", "Status", "Chosen", "Detached", "Granted", "Satisfied", "Yielding", "OnDrain", "TTL", "Message", "Age"},
			[]string{ticket.Name, "Manual", "worker-2", "Attaching", "<nil>", "<nil>", "Granted", "No", "<nil>", "<nil>", "<nil>", ""}},
		v1alpha1.KindVolumeHold: {heldVolume(),
			[]string{"Name", "Claim", "Node", "Holder", "State", "Waiting", "Volume", "Age"},
			[]string{heldVolume().Name, "shop/data", "worker-1", "shop/db-0", "DetachPending", "shop/db-1 at worker-2", "pv-7"}},
		v1alpha1.KindNodeMountReport: {nodeMountReport(),
			[]string{"Name", "Volumes", "Forgotten", "Unknown", "Changed", "Age"},
			[]string{"worker-1", "2", "1", "1"}},
	} {
		convertor, err := tableconvertor.New(crds[kind].v1.Spec.Versions[0].AdditionalPrinterColumns)
		if err != nil {
			t.Fatal(err)
		}
		table, err := convertor.ConvertToTable(context.Background(), &unstructured.Unstructured{Object: asMap(t, want.object)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names, cells []string
		for i, column := range table.ColumnDefinitions {
			names = append(names, column.Name)
			if column.Type != "date" {
				cells = append(cells, fmt.Sprint(table.Rows[0].Cells[i]))
			}
		}
		if !slices.Equal(names, want.names) || !slices.Equal(cells, want.cells) {
			t.Errorf("%s: columns %q, cells %q; want %q, %q", kind, names, cells, want.names, want.cells)
		}
	}
}

// With a status subresource, the API server would drop the status at create.
func TestHoldsHaveNoStatusSubresource(t *testing.T) {
	for kind, crd := range loadCRDs(t) {
		subresources := crd.v1.Spec.Versions[0].Subresources
		has := subresources != nil && subresources.Status != nil
		if want := kind != v1alpha1.KindVolumeHold; has != want {
			t.Errorf("%s has a status subresource: %t, want %t", kind, has, want)
		}
	}
}

func TestDefaultsAreThoseOfKubernetes(t *testing.T) {
	for name, in := range map[string]*v1alpha1.AttachPolicySpec{"no policy": nil, "empty policy": {}} {
		got := in.WithDefaults()
		want := v1alpha1.AttachPolicySpec{
			Slots:       &v1alpha1.SlotPolicy{Headroom: new(int32(0))},
			DetachDelay: &metav1.Duration{},
			ForceDetach: &v1alpha1.ForceDetachPolicy{
				AfterPodGone: "6m0s",
			},
			LiveMigration:   new(false),
			UnpublishFences: new(false),
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: defaults are %+v", name, got)
		}
	}
}

func TestDefaultsKeepWhatIsSetAndDoNotTouchTheOriginal(t *testing.T) {
	in := &v1alpha1.AttachPolicySpec{
		DetachDelay: &metav1.Duration{Duration: time.Minute},
		ForceDetach: &v1alpha1.ForceDetachPolicy{AfterUnreachable: &metav1.Duration{Duration: time.Hour}},
	}
	out := in.WithDefaults()
	if out.DetachDelay.Duration != time.Minute || out.ForceDetach.AfterUnreachable.Duration != time.Hour {
		t.Errorf("what was set is lost: %+v", out)
	}
	if out.ForceDetach.AfterPodGone == "" || in.ForceDetach.AfterPodGone != "" {
		t.Errorf("defaults went into the original: %+v", in)
	}
}

func TestTicketTypes(t *testing.T) {
	var constants []ledger.TicketType
	file, err := parser.ParseFile(token.NewFileSet(), "tickettype.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			constants = append(constants, ledger.TicketType(strings.Trim(l.Value, `"`)))
		}
		return true
	})
	types := ledger.TicketTypes()
	if !slices.Equal(constants, types) {
		t.Errorf("the API has constants for\n%q, the ledger rows for\n%q", constants, types)
	}
	crd := loadCRDs(t)[v1alpha1.KindVolumeTicket]
	enum := crd.structural.Properties["spec"].Properties["type"].ValueValidation.Enum
	if len(enum) != len(types) {
		t.Errorf("the schema knows %d types, the code %d", len(enum), len(types))
	}
	for i := range enum {
		if i < len(types) && enum[i].Object != string(types[i]) {
			t.Errorf("type %d is %v in the schema, %s in the code", i, enum[i].Object, types[i])
		}
	}
}

func TestVolumeHoldName(t *testing.T) {
	// Another name for the same volume would let it be held twice across an upgrade.
	if got, want := v1alpha1.VolumeHoldName("disk.example.com", "vol-1"), "vh-a5b2c37b42447b4672f722d53d88eff545ddb764"; got != want {
		t.Errorf("the name is %s, want %s", got, want)
	}
	seen := map[string]string{}
	for _, volume := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"kubernetes.io/fc", "[50060e801049cfd1]:0"}, {"d", "a/b^c d"}} {
		name := v1alpha1.VolumeHoldName(volume[0], volume[1])
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%q is no name for an object: %v", name, problems)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q have one name", volume, other)
		}
		seen[name] = volume[0] + "|" + volume[1]
	}
}

func TestVolumeStatusAnnotation(t *testing.T) {
	status := v1alpha1.VolumeStatus{Volumes: []v1alpha1.PodVolumeStatus{
		{Name: "data", Claim: "data", PersistentVolume: "pv-7", Node: "worker-2", SafeToMount: true, Transitions: 7, Reason: "Attached"},
		{Name: "cache", Reason: v1alpha1.ReasonPending, Message: `"quoted" & <tagged>`},
	}}
	text, err := status.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	back, err := v1alpha1.ParseVolumeStatus(text)
	if err != nil || !reflect.DeepEqual(back, status) {
		t.Errorf("came back as %+v (%v)", back, err)
	}
	if empty, err := (v1alpha1.VolumeStatus{}).Annotation(); err != nil || empty != `{"volumes":[]}` {
		t.Errorf("no volumes are written as %s (%v)", empty, err)
	}
	if newer, err := v1alpha1.ParseVolumeStatus(`{"volumes":[{"name":"data","speed":"fast"}]}`); err != nil || newer.Volumes[0].Name != "data" {
		t.Errorf("a newer writer's value is not understood: %v", err)
	}
	for _, bad := range []string{"", "yes", "[]", `{"volumes":"all"}`} {
		if _, err := v1alpha1.ParseVolumeStatus(bad); err == nil {
			t.Errorf("%q is taken for a VolumeStatus", bad)
		}
	}
}
