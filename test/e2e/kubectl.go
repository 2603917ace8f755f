// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// kubectlMoorage guards I7 for a user who may only read.
func kubectlMoorage() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "kubectl",
		Doc:   "kubectl moorage in a handover and at a full node: explain, nodes, volumes, tickets and drain-plan with read rights only, a ticket by hand, doctor.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			defer s.reader()()
			s.statefulSet("db")
			first := s.runs("db-0")
			from, claim := first.Spec.NodeName, dataOf("db-0")
			s.explains("db-0", facts.PodReady, "", "runs at "+from)
			s.explainsHandover(first, from, claim)
			s.explainsFullNode(from)
			s.movesByHand(claim, from)
			s.examines()
		}),
	}
}

func (s *story) reader() (remove func()) {
	_, block, _ := strings.Cut(docs.Kubectl, "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	var role rbacv1.ClusterRole
	s.must(yaml.UnmarshalStrict([]byte(block), &role))
	role.Name = "reader-" + s.Namespace
	roles, bindings := s.Client.RbacV1().ClusterRoles(), s.Client.RbacV1().ClusterRoleBindings()
	_, err := roles.Create(s.ctx, &role, metav1.CreateOptions{})
	s.must(err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: readerUser}},
	}
	_, err = bindings.Create(s.ctx, binding, metav1.CreateOptions{})
	s.must(err)
	return func() {
		s.must(errors.Join(bindings.Delete(s.ctx, role.Name, metav1.DeleteOptions{}), roles.Delete(s.ctx, role.Name, metav1.DeleteOptions{})))
	}
}

const readerUser = "reader"

type answer struct {
	out, err string
	code     int
}

func (s *story) moorageCommand(args ...string) answer {
	var out bytes.Buffer
	a := s.moorageWrites(&out, args...)
	a.out = out.String()
	return a
}

func (s *story) moorageWrites(out io.Writer, args ...string) answer {
	var errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &errs}
	code := kubectl.Run(s.ctx, streams, append(args, "--kubeconfig", s.Cluster.Kubeconfig(), "--namespace", s.Namespace))
	return answer{err: errs.String(), code: code}
}

func (s *story) reads(args ...string) answer {
	a := s.moorageCommand(append(args, "--as", readerUser)...)
	what := "kubectl moorage " + strings.Join(args, " ") + " needs no more than the documented rights"
	s.expect(a.code != 1 && !strings.Contains(a.out+a.err, "not seen:"), what, "exit code %d: %s%s", a.code, a.out, a.err)
	return a
}

func (s *story) readsJSON(into any, args ...string) {
	a := s.reads(append(args, "-o", "json")...)
	s.must(json.Unmarshal([]byte(a.out), into))
}

func (s *story) explains(pod, state, code string, texts ...string) {
	s.until(fmt.Sprintf("kubectl moorage explain pod %s says %s %s", pod, state, code), func() error {
		var x facts.Pod
		s.readsJSON(&x, "explain", "pod", pod)
		if x.State != state {
			return fmt.Errorf("the state is %s: %s", x.State, x.Answer)
		}
		reasons := slices.Concat(x.Volumes[0].Reasons, reasonsOf(x.Nodes))
		if code != "" && !slices.ContainsFunc(reasons, func(r facts.Reason) bool { return r.Code == code }) {
			return fmt.Errorf("the reasons are %v", reasons)
		}
		page := s.reads("explain", "pod/"+pod, "-o", "wide").out
		for _, text := range texts {
			if !strings.Contains(strings.Join(strings.Fields(page), " "), text) {
				return fmt.Errorf("it does not say %q:\n%s", text, page)
			}
		}
		return nil
	})
}

func reasonsOf(nodes []facts.NodesVerdict) []facts.Reason {
	var list []facts.Reason
	for _, n := range nodes {
		list = append(list, n.Reasons...)
	}
	return list
}

func (s *story) explainsHandover(first *corev1.Pod, from, claim string) {
	handle := s.handle(claim)
	mend := s.hangDetach(handle)
	s.cordon(from)
	s.remove("db-0")
	to := s.boundAgain("db-0", first).Spec.NodeName
	s.detachBegins(handle, from)
	s.explains("db-0", facts.PodWaitsForVolumes, "Detaching", "does not run: volume", "is being detached from "+from,
		"at "+from+" (holder): Detaching", "changes The driver's answer")
	s.say("kubectl moorage explain pod db-0 says that %s has not let go", from)
	leaving, reserved := s.slots(from), s.slots(to)
	s.expect(leaving.Leaving == 1 && leaving.Used == 0, "nodes shows the slot at "+from+" as leaving", "it says %+v", leaving)
	s.expect(reserved.Reserved == 1 && reserved.Used == 0, "nodes shows the slot at "+to+" as reserved", "it says %+v", reserved)
	volumes := s.reads("volumes", "-o", "wide").out
	s.expect(strings.Contains(volumes, "db-0 at "+to), "volumes says who is next", "it says %s", volumes)
	mend()
	s.runs("db-0")
	s.uncordon(from)
	s.explains("db-0", facts.PodReady, "", "runs at "+to)
}

func (s *story) slots(node string) facts.Slots {
	var list struct {
		Items []facts.Slots `json:"items"`
	}
	s.readsJSON(&list, "nodes", node)
	s.expect(len(list.Items) == 1, "nodes names the node's one driver", "it names %d", len(list.Items))
	return list.Items[0]
}

func (s *story) otherNode(node string) string {
	nodes, err := s.Client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	s.must(err)
	for _, n := range nodes.Items {
		if n.Name != node {
			return n.Name
		}
	}
	s.expect(false, "there is another node than "+node, "there is none")
	return ""
}

func (s *story) explainsFullNode(node string) {
	const slots = 4
	var pods []string
	for i := range slots + 1 {
		name := fmt.Sprintf("p%d", i+1)
		s.claim(name)
		s.podAt(node, name, name)
		if i < slots {
			s.runs(name)
		}
		pods = append(pods, name)
	}
	s.explains(pods[slots], facts.PodWaitsForNode, "NoFreeSlot", "no free slot of driver "+sandbox.DriverName+" (4 of 4 used)", "2 nodes are no choice (the pod's node selector")
	if used := s.slots(node); used.Used != slots || *used.Free != 0 {
		s.expect(false, "nodes shows the node as full", "it says %+v", used)
	}
	s.planned(node, 2, "4 pods with volumes would end: no controller makes them again. A drain needs --force because of ")
	s.adopt(pods[0])
	s.planned(node, 2, "1 of 1 pod that is made again would wait: no other node will do for it or has room for its volumes. 3 pods with volumes would end")
	s.orphan(pods[0])
	s.say("kubectl moorage explain pod %s says that %s is full", pods[slots], node)
	for _, name := range pods {
		s.remove(name)
	}
	for _, name := range pods {
		s.gone(name)
	}
}

func (s *story) planned(node string, code int, text string) {
	s.until("drain-plan says: "+text, func() error {
		plan := s.reads("drain-plan", node)
		if plan.code != code || !strings.Contains(strings.Join(strings.Fields(plan.out), " "), text) {
			return fmt.Errorf("exit code %d: %s", plan.code, plan.out)
		}
		return nil
	})
}

// A node without any reported volume is not believed for its first minutes: the kubelet must have had
// volumes before.
func (s *story) movesByHand(claim, to string) {
	s.must(s.Client.AppsV1().StatefulSets(s.Namespace).Delete(s.ctx, "db", metav1.DeleteOptions{}))
	s.gone("db-0")
	handle := s.handle(claim)
	a := s.moorageCommand("ticket", "make", "look", "--type", "Manual", "--claim", claim, "--node", to)
	s.expect(a.code == 0 && strings.Contains(strings.Join(strings.Fields(a.out), " "), "look has its volumes at "+to), "ticket make waits until the volume is attached", "exit code %d: %s%s", a.code, a.out, a.err)
	s.expect(len(s.calls(diskapi.ControllerPublish, diskapi.Applied, handle, to)) > 0, "the disk service has attached it to "+to, "it has not")
	tickets := s.reads("tickets").out
	s.expect(strings.Contains(tickets, "Manual"), "tickets shows the manual ticket", "it says %s", tickets)
	a = s.moorageCommand("ticket", "end", "look")
	s.expect(a.code == 0, "ticket end ends it", "exit code %d: %s%s", a.code, a.out, a.err)
	s.until("the disk service has detached it from "+to, func() error {
		if len(s.calls(diskapi.ControllerUnpublish, diskapi.Applied, handle, to)) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	s.say("attached %s to %s by hand, and detached it again", claim, to)
}

func (s *story) examines() {
	a := s.moorageCommand("doctor", "--all")
	s.expect(a.code == 0, "doctor finds no error", "exit code %d: %s%s", a.code, a.out, a.err)
	for _, text := range []string{"✓ probe", "✓ controller", "✓ scheduler", "✓ mode", "✓ invariants"} {
		s.expect(strings.Contains(a.out, text), "doctor says "+text, "it says %s", a.out)
	}
	s.reads("doctor")
}
