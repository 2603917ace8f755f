// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"errors"
	"flag"
	"fmt"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/report"
)

// NewCommand returns moorage-attacher's command line. It runs until its context is done or its lease is
// lost.
func NewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "moorage-attacher",
		Short: "Attach and detach volumes through the CSI driver beside it",
		Long: `moorage-attacher is a CSI sidecar that carries VolumeAttachments out. It stands
in for external-attacher 4.12 without another change: it takes the same flags.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// The flags are external-attacher's and are parsed as there.
		DisableFlagParsing: true,
		RunE: func(command *cobra.Command, args []string) error {
			line, err := parse(args, command.ErrOrStderr())
			switch {
			case errors.Is(err, flag.ErrHelp):
				return nil
			case err != nil:
				return err
			case line.version:
				_, err := fmt.Fprintln(command.OutOrStdout(), "moorage-attacher", report.Version)
				return err
			}
			if err := logsapi.ValidateAndApply(line.logging, nil); err != nil {
				return fmt.Errorf("set up logging: %w", err)
			}
			for _, note := range line.notes {
				klog.FromContext(command.Context()).Info(note)
			}
			return Run(command.Context(), line.config)
		},
	}
}
