// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk"
)

type verdict struct {
	Log        []disk.Entry     `json:"log,omitempty"`
	Violations []disk.Violation `json:"violations"`
}

func newJudgeCommand(s *Session) *cobra.Command {
	var finish, quiet bool
	var filter disk.Filter
	cmd := &cobra.Command{
		Use:   "judge",
		Short: "Print the disk service's log and the violations it saw; fails if there are any",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, err := sandbox.Find(cmd.Context(), s.dir, s.name)
			if err != nil {
				return err
			}
			info, err := remote.Info(cmd.Context())
			if err != nil {
				return err
			}
			client := disk.Client{BaseURL: info.DiskURL}
			var v verdict
			if !quiet {
				if v.Log, err = client.Log(cmd.Context(), 0, filter); err != nil {
					return err
				}
			}
			ask := func() ([]disk.Violation, error) { return client.Violations(cmd.Context(), 0) }
			if finish {
				ask = func() ([]disk.Violation, error) { return client.Finish(cmd.Context()) }
			}
			if v.Violations, err = ask(); err != nil {
				return err
			}
			return s.pronounce(cmd, v, quiet)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&finish, "finish", false, "count what is attached, staged or published now as left over")
	fs.BoolVarP(&quiet, "quiet", "q", false, "violations only, without the log")
	fs.StringVar(&filter.Volume, "volume", "", "only calls for this volume handle")
	fs.StringVar(&filter.Node, "node", "", "only calls for this node ID")
	return cmd
}

func (s *Session) pronounce(cmd *cobra.Command, v verdict, quiet bool) error {
	out := cmd.OutOrStdout()
	if s.json {
		if err := printJSON(out, v); err != nil {
			return err
		}
	} else {
		if !quiet {
			if err := disk.PrintLog(out, v.Log); err != nil {
				return err
			}
			fmt.Fprintln(out)
		}
		if err := disk.PrintViolations(out, v.Violations); err != nil {
			return err
		}
	}
	if len(v.Violations) > 0 {
		return ErrReported
	}
	return nil
}
