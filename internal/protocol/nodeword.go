// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// askNode asks a node to look, with a new number.
func askNode(step rules.Step) Request {
	word := step.Word
	return Request{Kind: rules.AskNode, Key: string(step.Node), Node: step.Node, UID: word.UID, Version: word.Version, Look: max(step.Number, word.Look+1, word.Looked+1)}
}

// askAnswered: without an answer the next number is higher; a second look does no harm. A node that can't
// be asked counts as silent.
func askAnswered(t Task, a Answer) (Task, Move) {
	switch {
	case a.Result == Done && t.Sent.Kind == rules.AskNode:
		asked := ledger.LookAsked{Volume: t.Step.Volume, Node: t.Step.Node, UID: t.Step.UID, Version: t.Step.Version, Look: t.Sent.Look, Vacant: t.Step.Vacant}
		return t.end(Finished, "", asked)
	case a.Result == Conflict && t.Sent.Kind == rules.AskNode:
		return t.send(read(NodeWords, string(t.Step.Node)))
	case a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s has no NodeMountReport any more", t.Step.Node), ledger.NodeWordGone{Node: t.Step.Node, UID: t.Step.Word.UID})
	case a.Result == Done:
		return t.end(Stale, fmt.Sprintf("the NodeMountReport of %s is not as it was", t.Step.Node))
	}
	if a.Result == Refused && t.Sent.Kind == rules.AskNode {
		return t.fail(a, ledger.LookRefused{Node: t.Step.Node})
	}
	return t.fail(a)
}
