// SPDX-License-Identifier: Apache-2.0

// Package top is kubectl moorage top: slots, waiting pods and moving volumes, live.
//
// Reads: the ledger's objects, with watches. Decides and writes nothing.
package top

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

const tick = time.Second

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	return &cobra.Command{
		Use: "top", Short: "Watch slots, waiting pods and volumes on their way",
		Long: "Watch slots, waiting pods and volumes on their way. Arrows and Page Up and Down scroll, q ends it.\n\n" +
			"Waiting are tickets, and pods that have a volume that needs an attachment, and that wait, don't start for long or are at a dead node; of any other pod, explain says why it does not run. " +
			"Nodes that are not ready come first, then full ones. " +
			"With -n, pods and volumes are those of that namespace; slots are always those of the whole nodes.",
		Example: "  # Watch the whole cluster\n  kubectl moorage top\n\n  # Print the pods and volumes of one namespace once\n  kubectl moorage top -n shop | cat",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := b.Connect()
			if err != nil {
				return err
			}
			if !b.Style().Terminal {
				return show(cmd.Context(), b, c)
			}
			return live(cmd.Context(), b, c)
		},
	}
}

func show(ctx context.Context, b *command.Base, c *cluster.Cluster) error {
	w, err := c.Read(ctx)
	if err != nil {
		return err
	}
	if err := screen.Unseen(b.Streams.ErrOut, screen.StyleOf(b.Streams.ErrOut), w.Unseen); err != nil {
		return err
	}
	return screen.TopOf(w, b.Flags.Chosen()).Print(b.Streams.Out, b.Style())
}

// live redraws at every change, and every second for the ages, until the user or ctx ends it.
func live(ctx context.Context, b *command.Base, c *cluster.Cluster) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &model{base: b, clock: c.Clock}
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(b.Streams.In), tea.WithOutput(screen.Raw(b.Streams.Out)), tea.WithAltScreen(), tea.WithoutSignalHandler())
	ended := make(chan error, 1)
	go func() {
		err := c.Follow(ctx, func(w *facts.World) error {
			program.Send(screen.TopOf(w, b.Flags.Chosen()))
			return nil
		})
		ended <- err
		program.Quit()
	}()
	_, err := program.Run()
	stop()
	failed := <-ended
	if errors.Is(err, tea.ErrProgramKilled) { // ctx has ended
		err = nil
	}
	return errors.Join(failed, err)
}

type model struct {
	base  *command.Base
	clock func() time.Time
	top   screen.Top
	read  bool // the cluster has been read
	from  int  // first visible table line
}

type ticked struct{}

func nextTick() tea.Cmd { return tea.Tick(tick, func(time.Time) tea.Msg { return ticked{} }) }

// Init starts the ticks.
func (m *model) Init() tea.Cmd { return nextTick() }

// Update handles a message.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case screen.Top:
		m.top, m.read = message, true
	case ticked:
		return m, nextTick()
	case tea.KeyMsg:
		_, _, room := m.parts()
		switch message.String() {
		case "q", "esc", "ctrl+c":
			return m, tea.Quit
		case "down", "j":
			m.from++
		case "up", "k":
			m.from--
		case "pgdown", " ":
			m.from += room
		case "pgup":
			m.from -= room
		case "home", "g":
			m.from = 0
		case "end", "G":
			m.from = 1 << 30
		}
	}
	return m, nil
}

// parts also counts the table lines with room.
func (m *model) parts() (head, lines []string, room int) {
	s := m.base.Style()
	m.top.Now = m.clock()
	var text bytes.Buffer
	_ = m.top.Tables(screen.Visible(&text), s) // a buffer can't fail
	lines = strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	text.Reset()
	_, _ = screen.Visible(&text).Write([]byte(strings.Join(m.top.Head(s), "\n")))
	head = append(strings.Split(text.String(), "\n"), "")
	room = len(lines)
	if s.Height > 0 {
		room = max(1, s.Height-len(head)-1)
	}
	m.from = max(0, min(m.from, len(lines)-room))
	return head, lines, room
}

// View is the screen's text.
func (m *model) View() string {
	if !m.read {
		return "reading the cluster …"
	}
	head, lines, room := m.parts()
	shown := lines[m.from:min(len(lines), m.from+room)]
	keys := "q ends it"
	if len(shown) < len(lines) {
		keys = "↑ ↓ PgUp PgDn scroll, " + keys
	}
	return strings.Join(append(append(head, shown...), keys), "\n")
}
