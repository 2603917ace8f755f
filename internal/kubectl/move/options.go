// SPDX-License-Identifier: Apache-2.0

package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// options are the flags that all commands have, and the node, which some have.
type options struct {
	base    *command.Base
	node    string
	dryRun  string
	wait    bool
	timeout time.Duration
}

// The values of --dry-run, as kubectl's.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// add adds all flags.
func (o *options) add(cmd *cobra.Command) {
	o.addNode(cmd, "The node (required)")
	if err := cmd.MarkFlagRequired("node"); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

// addNode adds all flags; the node may be left out.
func (o *options) addNode(cmd *cobra.Command, usage string) {
	o.addCommon(cmd)
	cmd.Flags().StringVar(&o.node, "node", "", usage)
	o.complete(cmd, "node", o.base.Complete(command.NodeNames))
}

func (o *options) complete(cmd *cobra.Command, flag string, names cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, names); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

// addCommon adds the flags of every command that writes.
func (o *options) addCommon(cmd *cobra.Command) {
	o.addDryRun(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.wait, "wait", true, "Wait until it is done")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "For how long to wait")
}

func (o *options) addDryRun(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.dryRun, "dry-run", dryRunNone, `Must be "none", "server", or "client": with client nothing is sent, with server nothing is kept`)
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
}

func (o *options) validDryRun() error {
	if o.base.Flags.Bundle != "" && o.dryRun != dryRunClient {
		return errors.New("--bundle: a bundle is read only: nothing in it can be changed. Leave --bundle out to ask the cluster, or add --dry-run=client")
	}
	switch o.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
		return nil
	}
	return fmt.Errorf(`invalid dry-run value (%v). Must be "none", "server", or "client"`, o.dryRun)
}

func (o *options) validate() error {
	if err := o.validDryRun(); err != nil {
		return err
	}
	if o.wait && o.timeout <= 0 {
		return fmt.Errorf("--timeout %s: must be positive; --wait=false does not wait", o.timeout)
	}
	return nil
}

// volume is the PersistentVolume that was named: as NAME, pv/NAME, or pvc/NAME of a
// claim in the namespace. What may not be listed may be there: of a claim's volume that is enough, as its ticket names
// the claim. unread is that claim where its PersistentVolume can't be read; nil where it can.
func (o *options) volume(w *facts.World, namespace, arg string) (name string, unread *corev1.PersistentVolumeClaim, err error) {
	name = arg
	var claim *corev1.PersistentVolumeClaim
	if kind, rest, typed := strings.Cut(arg, "/"); typed {
		switch kind {
		case "pv", "persistentvolume", "persistentvolumes":
			name = rest
		case "pvc", "claim", "persistentvolumeclaim", "persistentvolumeclaims":
			claim = w.Claim(namespace, rest)
			switch {
			case claim == nil:
				return "", nil, command.Missing(w.Unseen, "persistentvolumeclaims", namespace, rest)
			case claim.Spec.VolumeName == "":
				return "", nil, fmt.Errorf("claim %s/%s is not bound to a volume yet. See why: kubectl moorage explain pvc %s -n %s", namespace, rest, rest, namespace)
			}
			name = claim.Spec.VolumeName
		default:
			return "", nil, fmt.Errorf("%q is no volume: name a PersistentVolume, or pvc/NAME with -n", arg)
		}
	}
	if w.PersistentVolume(name) == nil {
		missing := command.Missing(w.Unseen, "persistentvolumes", "", name)
		if claim == nil || isNotThere(missing) {
			return "", nil, missing
		}
		unread = claim
	}
	if w.Node(o.node) == nil {
		if missing := missingNode(w, o.node); claim == nil || isNotThere(missing) {
			return "", nil, missing
		}
	}
	return name, unread, nil
}

func missingNode(w *facts.World, name string) error {
	return command.Missing(w.Unseen, "nodes", "", name)
}

// isNotThere says whether what is missing does not exist; false: it can't be read.
func isNotThere(missing error) bool {
	gone := (*command.NotFoundError)(nil)
	return errors.As(missing, &gone)
}

// suffix is what kubectl prints after what was not really done.
func (o *options) suffix() string {
	switch o.dryRun {
	case dryRunClient:
		return " (dry run)"
	case dryRunServer:
		return " (server dry run)"
	}
	return ""
}

// serverDryRun is the DryRun of a request's options.
func (o *options) serverDryRun() []string {
	if o.dryRun == dryRunServer {
		return []string{"All"}
	}
	return nil
}

// refusal prints what is in the way, and ends the command.
func (o *options) refusal(format string, args ...any) error {
	return &command.ExitError{Code: command.ExitFindings, Message: fmt.Sprintf(format, args...)}
}

func (o *options) say(format string, args ...any) error {
	return o.base.Say(o.base.Streams.Out, format, args...)
}

var errDone = errors.New("done")

// until follows the cluster until see is done. What it waits for is printed
// when it changes.
func (o *options) until(ctx context.Context, c *cluster.Cluster, see func(*facts.World) (done bool, waits string, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, errTimeout)
	defer cancel()
	last := ""
	err := c.Follow(ctx, func(w *facts.World) error {
		done, waits, err := see(w)
		switch {
		case err != nil:
			return err
		case done:
			return errDone
		case waits != last:
			last = waits
			return o.say("waiting: %s", waits)
		}
		return nil
	})
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.Is(context.Cause(ctx), errTimeout):
		return fmt.Errorf("timed out after %s, waiting for %s. It goes on in the cluster", o.timeout, cmp.Or(last, "the API server"))
	case err == nil:
		return ctx.Err() // Ctrl-C
	}
	return err
}

var errTimeout = errors.New("timed out")
