// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// ErrNoCluster: neither a kubeconfig nor a flag names a cluster.
var ErrNoCluster = errors.New("no cluster is configured: name a kubeconfig with --kubeconfig or $KUBECONFIG, or a server with --server")

// Flags are client-go's for cluster, user and namespace. cli-runtime's link kustomize and text/template,
// which doubles the program's size.
type Flags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	// Bundle is a file of kubectl moorage bundle, instead of a cluster.
	Bundle string
	// Server replaces the server in tests; it is no flag.
	Server   string
	set      *pflag.FlagSet
	Warnings io.Writer
}

// NewFlags returns flags with kubectl's defaults.
func NewFlags(warnings io.Writer) *Flags {
	return &Flags{rules: clientcmd.NewDefaultClientConfigLoadingRules(), Warnings: warnings}
}

// AddFlags adds the flags to a set.
func (f *Flags) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&f.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use for CLI requests")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&f.overrides, set, names)
	f.set = set
	set.StringVar(&f.Bundle, "bundle", "", "File of kubectl moorage bundle to read from in place of a cluster")
}

// Namespace is the flags' namespace for a bundle, which has no context.
func (f *Flags) Namespace() string {
	return cmp.Or(f.overrides.Context.Namespace, metav1.NamespaceDefault)
}

// Chosen is -n's namespace; or empty.
func (f *Flags) Chosen() string { return f.overrides.Context.Namespace }

// Named are the user's cluster flags for a shell, without secrets.
func (f *Flags) Named() string {
	var parts []string
	for _, name := range []string{
		clientcmd.RecommendedConfigPathFlag, clientcmd.FlagContext, clientcmd.FlagClusterName, clientcmd.FlagAuthInfoName, clientcmd.FlagAPIServer,
	} {
		if f.set == nil {
			break
		}
		if flag := f.set.Lookup(name); flag != nil && flag.Changed {
			parts = append(parts, "--"+name+" "+screen.Quoted(flag.Value.String()))
		}
	}
	return strings.Join(parts, " ")
}

// Config is the flags' client configuration and namespace. The error describes the kubeconfig's fault.
func (f *Flags) Config() (*rest.Config, string, error) {
	rules, overrides := *f.rules, f.overrides
	if f.Server != "" {
		rules.ExplicitPath, overrides.ClusterInfo.Server = cmp.Or(rules.ExplicitPath, os.DevNull), f.Server
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&rules, &overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", ErrNoCluster
	}
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", err
	}
	if f.Warnings != nil {
		config.WarningHandler = rest.NewWarningWriter(f.Warnings, rest.WarningWriterOptions{Deduplicate: true})
	}
	return config, namespace, nil
}

// NewOptionsCommand lists all commands' flags, as kubectl options does.
func NewOptionsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags of all commands, such as -n and --context",
		Example: "  kubectl moorage options", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), cmd.Root().PersistentFlags().FlagUsagesWrapped(screen.Style{}.Columns()))
			return err
		},
	}
}

// Help prints a command's help in a style's width; the root's fits a screen.
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
	if cmd.HasParent() {
		b.WriteString("Usage:\n  " + cmd.UseLine() + "\n")
		if cmd.HasAvailableSubCommands() {
			b.WriteString("  " + cmd.CommandPath() + " [command]\n")
		}
		if len(cmd.Aliases) > 0 {
			b.WriteString("\nAliases:\n  " + cmd.NameAndAliases() + "\n")
		}
		b.WriteString("\n")
	}
	if cmd.HasExample() {
		b.WriteString("Examples:\n" + cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				name := fmt.Sprintf("  %-*s ", c.NamePadding(), c.Name())
				b.WriteString(name + s.Wrap(c.Short, len(name)) + "\n")
			}
		}
	}
	if cmd.HasParent() && cmd.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(s.Columns()), " \n") + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nMore of a command: %s [command] --help\n", cmd.CommandPath())
	}
	if cmd.HasParent() && cmd.Name() != "options" {
		fmt.Fprintf(&b, "Flags of all commands: %s options\n", cmd.Root().CommandPath())
	}
	_, err := io.WriteString(w, b.String())
	return err
}
