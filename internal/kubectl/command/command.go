// SPDX-License-Identifier: Apache-2.0

// Package command has the common parts of kubectl moorage's commands.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// Base is every command's common part.
type Base struct {
	// Flags are kubectl's own, such as --kubeconfig and -n.
	Flags *Flags
	// Streams are the terminal's, or a test's. Output passes through screen.Visible.
	Streams   genericiooptions.IOStreams
	UserAgent string
	// Now replaces the API server's clock in tests.
	Now func() time.Time
	// Set replaces the output stream's style.
	Set *screen.Style
}

// Connect makes the flags' clients: of a cluster, or of a file, with its time as the clock.
func (b *Base) Connect() (*cluster.Cluster, error) {
	if b.Flags.Bundle != "" {
		a, err := archive.Open(b.Flags.Bundle)
		if err != nil {
			return nil, err
		}
		c, err := cluster.Connect(archive.NewServer(a).Config(), b.Flags.Namespace(), b.UserAgent)
		if err == nil {
			c.Clock, c.File = a.Now, true
		}
		return c, err
	}
	config, namespace, err := b.Flags.Config()
	if err != nil {
		return nil, err
	}
	c, err := cluster.Connect(config, namespace, b.UserAgent)
	if err == nil && b.Now != nil {
		c.Clock = b.Now
	}
	return c, err
}

// Style suits the output stream.
func (b *Base) Style() screen.Style {
	s := screen.StyleOf(b.Streams.Out)
	if b.Set != nil {
		s = *b.Set
	}
	s.Bundle, s.Flags = b.Flags.Bundle, b.Flags.Named()
	return s
}

// Plain is the style for a page or a file; its commands name the same source.
func (b *Base) Plain() screen.Style {
	return screen.Style{Bundle: b.Flags.Bundle, Flags: b.Flags.Named()}
}

// Say prints a wrapped sentence.
func (b *Base) Say(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(w, b.Style().Wrap(fmt.Sprintf(format, args...), 0))
	return err
}

// Read connects and reads the cluster once.
func (b *Base) Read(ctx context.Context) (*cluster.Cluster, *facts.World, error) {
	c, err := b.Connect()
	if err != nil {
		return nil, nil, err
	}
	w, err := c.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c, w, nil
}

// ExitError ends the program with its own code; without a message, silently.
type ExitError struct {
	Code    int
	Message string
}

// Error returns the message.
func (e *ExitError) Error() string { return e.Message }

const (
	ExitFailed   = 1 // the command failed
	ExitFindings = 2 // a doctor's finding, or a refused request
)

// Exit prints an error as kubectl does, and returns its exit code.
func (b *Base) Exit(err error) int {
	var exit *ExitError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.Message != "" {
			fmt.Fprintf(b.Streams.ErrOut, "error: %s\n", b.Style().Linked(exit.Message))
		}
		return exit.Code
	case errors.Is(err, context.Canceled):
		return ExitFailed // Ctrl-C
	case errors.As(err, &status) && b.Flags.Bundle != "": // no server
		fmt.Fprintf(b.Streams.ErrOut, "error: %s: %s\n", b.Flags.Bundle, err)
	case errors.As(err, &status):
		fmt.Fprintf(b.Streams.ErrOut, "Error from server (%s): %s\n", status.Status().Reason, b.Style().Linked(err.Error()))
	default:
		fmt.Fprintf(b.Streams.ErrOut, "error: %s\n", b.Style().Linked(strings.TrimPrefix(err.Error(), "error: ")))
	}
	return ExitFailed
}

// completionPatience is a shell's wait for names after Tab.
const completionPatience = 3 * time.Second

// Complete returns a cobra completion with names from the cluster.
func (b *Base) Complete(names func(ctx context.Context, c *cluster.Cluster, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		c, err := b.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		var found []string
		for _, name := range names(ctx, c, args) {
			if strings.HasPrefix(name, prefix) {
				found = append(found, name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// NotFoundError means that an object does not exist.
type NotFoundError struct{ Message string }

// Error returns the message.
func (e *NotFoundError) Error() string { return e.Message }

// Missing is the error for an unlisted object: a NotFoundError if it does not exist, another if it may not
// be read. namespace may be empty.
func Missing(unseen []facts.Unseen, resource, namespace, name string) error {
	for _, u := range unseen {
		if u.Resource == resource && (u.Namespace == "" || u.Namespace != namespace) {
			return fmt.Errorf("%s %q can't be read: the right to list %s is missing (kubectl auth can-i list %s%s): %s", resource, name, resource, resource, Inside(namespace), u.Message)
		}
	}
	message := fmt.Sprintf("%s %q not found", resource, name)
	if namespace != "" {
		message = fmt.Sprintf("%s %q not found in namespace %q", resource, name, namespace)
	}
	return &NotFoundError{message}
}

// UnreadTicket is the error for a ticket that may not be read, existing or not; nil if its namespace's
// tickets are seen, or not served.
func UnreadTicket(w *facts.World, namespace, name string) error {
	err := Missing(w.Unseen, v1alpha1.Resource(v1alpha1.ResourceVolumeTickets).String(), namespace, name)
	if missing := (*NotFoundError)(nil); errors.As(err, &missing) || !w.Served() {
		return nil
	}
	return err
}

// NoNamespace says that a namespace does not exist; empty: it exists, or that is unknown.
func NoNamespace(ctx context.Context, c *cluster.Cluster, namespace string) string {
	if namespace == "" {
		return ""
	}
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", namespace).String()}
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, named)
	if err != nil || slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return n.Name == namespace }) {
		return ""
	}
	return fmt.Sprintf("namespace %q not found", namespace)
}

// Inside is the namespace's flag in a command; or empty.
func Inside(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// One takes exactly one name; else the error shows what to type.
func One(what, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("name a %s: %s", what, usage)
		case 1:
			return nil
		}
		return fmt.Errorf("name one %s, not %d: %s", what, len(args), usage)
	}
}

// Names completes a resource's names, in the namespace if it has one. After an error there are none.
func Names(resource string) func(context.Context, *cluster.Cluster, []string) []string {
	return func(ctx context.Context, c *cluster.Cluster, _ []string) []string { return c.Names(ctx, resource) }
}

// Namespaces completes namespaces.
func Namespaces(ctx context.Context, c *cluster.Cluster, _ []string) []string {
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: cluster.MostNames})
	if err != nil {
		return nil
	}
	return cluster.NamesOf(list)
}

// Failed wraps an error and, for a missing right, says how to ask for it. right is kubectl auth can-i's
// argument, such as "create volumetickets.moorage.dev -n shop". A quota or policy also forbids, but only a
// missing right names the user's forbidden verb (apiserver, endpoints/filters/authorization.go).
func Failed(what, right string, err error) error {
	verb, _, _ := strings.Cut(right, " ")
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "+verb+" resource") {
		return fmt.Errorf("%s (kubectl auth can-i %s): %w", what, right, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// longestTTL is the maximum of spec.ttlSeconds.
const longestTTL = 2592000 * time.Second

// CheckTTL checks --ttl, which is written in whole seconds.
func CheckTTL(ttl time.Duration) error {
	switch {
	case ttl < time.Second:
		return fmt.Errorf("--ttl %s: must be a second or more", ttl)
	case ttl > longestTTL:
		return fmt.Errorf("--ttl %s: a ticket may last %.0fh at most; kubectl moorage ticket renew begins its time anew", ttl, longestTTL.Hours())
	}
	return nil
}

// WriteWhole writes a file for its owner only, and names it when whole. It writes into an existing device
// or pipe.
func WriteWhole(name string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		to, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(to), to.Close())
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".moorage-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
