// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/moorage-dev/moorage/internal/arbiter"
)

// doFirst has a reason with several ways out say what to do first, as its message has the case;
// More has them all.
func doFirst(r Reason) Reason {
	switch codeOf(&r) {
	case arbiter.InUseUnknown:
	case arbiter.HeldElsewhere:
		if givesWay(&r) {
			r.Do = "Nothing: the ticket gives the volume up by then, by itself. To delete it before would end its work before its time is over"
		}
		return r
	default:
		return r
	}
	node := cmp.Or(r.Node, "NODE")
	first := fmt.Sprintf("Look at %s, as root, whether it is mounted there (findmnt). What to do then: -o wide", node)
	switch {
	case strings.Contains(r.Message, "has not reported since"):
		first = "See whether its kubelet runs, which says by itself what is in use: kubectl describe node " + node
	case strings.Contains(r.Message, "another machine"):
		first = fmt.Sprintf("Make sure that the machine that was called %s before is gone, or powered off. What to do then: -o wide", node)
	case strings.Contains(r.Message, "requireNodeWord"):
		first = fmt.Sprintf("See whether moorage-node runs at %s: kubectl get pods -A -o wide -l app.kubernetes.io/component=node", node)
	}
	r.Do, r.More = first, r.Do
	return r
}

// givesWay says whether who holds a volume is a ticket that gives it up by itself: as its message
// says, since the controller's words are all that some people may read.
func givesWay(r *Reason) bool {
	return strings.Contains(r.Message, "has been asked to let go of it by")
}
