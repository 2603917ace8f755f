// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Node works serially in run; messages wait in the inbox.
type Node struct {
	config     Config
	kube       kubernetes.Interface
	name, zone string
	wake       chan struct{}

	mu    sync.Mutex
	inbox inbox
	// stopping ends the machine's work, and ended is closed after that.
	stopping context.CancelFunc
	ended    chan struct{}

	// Only run uses these.
	books     *books
	attached  map[corev1.UniqueVolumeName]bool
	lease     *coordinationv1.Lease
	written   []corev1.UniqueVolumeName // the last written volumesInUse
	reportDue time.Time
	bootID    string
}

type inbox struct {
	pods     map[types.UID]*corev1.Pod
	lost     map[types.UID]bool
	attached map[corev1.UniqueVolumeName]bool // nil: nothing new
	booted   bool
	off      bool
}

func newInbox() inbox {
	return inbox{pods: map[types.UID]*corev1.Pod{}, lost: map[types.UID]bool{}}
}

func newNode(c Config, kube kubernetes.Interface, name, zone string) *Node {
	return &Node{
		config: c, kube: kube, name: name, zone: zone, wake: make(chan struct{}, 1), inbox: newInbox(),
		books: newBooks(), bootID: string(uuid.NewUUID()),
	}
}

func nodeID(name string) string { return diskapi.NodeID(name) }

func (n *Node) tell(change func(*inbox)) {
	n.mu.Lock()
	change(&n.inbox)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func (n *Node) seePod(pod *corev1.Pod) { n.tell(func(in *inbox) { in.pods[pod.UID] = pod }) }

func (n *Node) losePod(uid types.UID) {
	n.tell(func(in *inbox) {
		delete(in.pods, uid)
		in.lost[uid] = true
	})
}

func (n *Node) seeNode(node *corev1.Node) {
	attached := attachedAt(node)
	n.tell(func(in *inbox) { in.attached = attached })
}

func attachedAt(node *corev1.Node) map[corev1.UniqueVolumeName]bool {
	out := make(map[corev1.UniqueVolumeName]bool, len(node.Status.VolumesAttached))
	for _, v := range node.Status.VolumesAttached {
		out[v.Name] = true
	}
	return out
}

// The machine's work is over when stop returns.
func (n *Node) stop() {
	n.tell(func(in *inbox) { in.off = true })
	n.mu.Lock()
	stopping, ended := n.stopping, n.ended
	n.mu.Unlock()
	if stopping != nil {
		stopping()
		<-ended
	}
}

func (n *Node) boot() { n.tell(func(in *inbox) { in.off, in.booted = false, true }) }

func (n *Node) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, cancel := context.WithCancel(ctx)
		n.mu.Lock()
		off := n.inbox.off
		ended := make(chan struct{})
		n.stopping, n.ended = cancel, ended
		n.mu.Unlock()
		if off {
			close(ended)
			select {
			case <-n.wake:
			case <-ctx.Done():
			}
		} else {
			n.live(life)
			close(ended)
		}
		cancel()
	}
}

func (n *Node) live(ctx context.Context) {
	status := time.NewTimer(time.Duration(rand.Int64N(int64(n.config.Status))))
	defer status.Stop()
	renew := time.NewTimer(time.Duration(rand.Int64N(int64(n.config.Lease / renewals))))
	defer renew.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
			n.work(ctx)
		case <-status.C:
			n.report(ctx)
			n.work(ctx)
			status.Reset(n.config.Status)
		case <-renew.C:
			n.renew(ctx)
			renew.Reset(n.config.Lease / renewals)
		}
	}
}

// Renewals per duration of a Lease, as in the kubelet.
const renewals = 4

func (n *Node) look() {
	n.mu.Lock()
	in := n.inbox
	n.inbox = newInbox()
	n.inbox.off = in.off
	n.mu.Unlock()
	if in.booted {
		n.forget()
	}
	if in.attached != nil {
		n.attached = in.attached
	}
	for uid := range in.lost {
		n.books.lose(uid)
	}
	for _, pod := range in.pods {
		volumes, ok := n.config.volumesOf(pod)
		if !ok {
			n.config.Log("%s: a volume of pod %s/%s is not known", n.name, pod.Namespace, pod.Name)
			continue
		}
		n.books.see(pod, volumes)
	}
}

// After a boot nothing is staged, and earlier reports don't count.
func (n *Node) forget() {
	n.books, n.bootID, n.reportDue, n.written = newBooks(), string(uuid.NewUUID()), time.Time{}, nil
}

func (n *Node) work(ctx context.Context) {
	n.look()
	if ctx.Err() != nil {
		return
	}
	n.greet(ctx)
	n.mount(ctx)
	n.start(ctx)
	n.unmount(ctx)
	n.finish(ctx)
}
