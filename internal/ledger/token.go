// SPDX-License-Identifier: Apache-2.0

package ledger

// tokensOfATerm is how many fencing tokens a term of leadership has, at most.
const tokensOfATerm = 1_000_000_000

// firstToken is below all fencing tokens of a term, and above all of earlier terms.
func firstToken(epoch int64) int64 { return min(epoch, MaxTransitions/tokensOfATerm) * tokensOfATerm }

// beginTerm starts a term's tokens above the tokens of all earlier terms.
func (l *Ledger) beginTerm(epoch int64) {
	l.facts.epochOfTokens, l.facts.token = epoch, firstToken(epoch)
}

// seeToken takes in a fencing token of any volume. A number above all of this term was edited, and is only of
// its own volume.
func (l *Ledger) seeToken(n int64) {
	if n < firstToken(l.facts.epochOfTokens+1) {
		l.facts.token = max(l.facts.token, n)
	}
}

// Token is the highest fencing token (Hold.Transitions, Attachment.Transitions) of this term that this process
// has seen, of all volumes. The next one is higher: for each volume the tokens rise, although nothing keeps
// the token of a volume that is at no node.
func (s Snapshot) Token() int64 { return s.facts.token }
