// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// Help prints the help of a command and those below it so that it fits the width of a
// style. The flags that all commands have stand in the help of the root only.
func Help(root *cobra.Command, style func() screen.Style) {
	root.SetUsageFunc(func(cmd *cobra.Command) error { return usage(cmd.OutOrStderr(), cmd, style()) })
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		s, out := style(), cmd.OutOrStdout()
		text := cmd.Long
		if text == "" {
			text = cmd.Short
		}
		for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			fmt.Fprintln(out, s.Wrap(paragraph, 0))
		}
		fmt.Fprintln(out)
		if err := usage(out, cmd, s); err != nil {
			cmd.PrintErrln(err)
		}
	})
}

func usage(w io.Writer, cmd *cobra.Command, s screen.Style) error {
	var b strings.Builder
	b.WriteString("Usage:\n  " + cmd.UseLine() + "\n")
	if cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.CommandPath() + " [command]\n")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\nAliases:\n  " + cmd.NameAndAliases() + "\n")
	}
	if cmd.HasExample() {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				name := fmt.Sprintf("  %-*s ", c.NamePadding(), c.Name())
				b.WriteString(name + s.Wrap(c.Short, len(name)) + "\n")
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(s.Columns()), " \n") + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s [command] --help says more of a command.\n", cmd.CommandPath())
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, "\nFlags of all commands, such as -n and --context: %s --help\n", cmd.Root().CommandPath())
	}
	_, err := io.WriteString(w, b.String())
	return err
}
