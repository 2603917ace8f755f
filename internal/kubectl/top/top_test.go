// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

func TestScroll(t *testing.T) {
	m := &model{
		base:  &command.Base{Flags: command.NewFlags(nil), Streams: genericiooptions.NewTestIOStreamsDiscard(), Set: &screen.Style{Terminal: true, Height: 24}},
		clock: func() time.Time { return time.Unix(0, 0) },
	}
	var top screen.Top
	for i := range 40 {
		top.Slots = append(top.Slots, facts.Slots{NodeState: facts.NodeState{Node: fmt.Sprintf("worker-%02d", i), Ready: true}, Driver: "d"})
	}
	m.Update(top)
	for _, step := range []struct {
		key       tea.KeyType
		has, lack string
	}{
		{0, "worker-00", "worker-39"}, {tea.KeyUp, "worker-00", "worker-39"}, {tea.KeyDown, "worker-00", "NODE"},
		{tea.KeyEnd, "worker-39", "worker-00"}, {tea.KeyPgUp, "worker-10", "worker-39"}, {tea.KeyHome, "NODE", "worker-39"},
	} {
		if step.key != 0 {
			m.Update(tea.KeyMsg{Type: step.key})
		}
		text := m.View()
		if lines := strings.Count(text, "\n") + 1; lines > 24 || !strings.Contains(text, step.has) || strings.Contains(text, step.lack) || !strings.Contains(text, "slots taken") {
			t.Errorf("after %v: %d lines:\n%s", step.key, lines, text)
		}
	}
	if _, end := m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q")}); end == nil || end() != tea.Quit() {
		t.Error("q does not end it")
	}
}
