// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func PrintLog(w io.Writer, entries []Entry) error {
	ended := map[uint64]bool{}
	for _, e := range entries {
		if e.Phase == diskapi.Returned {
			ended[e.ID] = true
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEQ\tTIME\tCALL\tVOLUME\tNODE\tOUTCOME\tCODE\tMS\tDETAIL")
	for _, e := range entries {
		if ended[e.ID] && e.Phase != diskapi.Returned {
			continue
		}
		fmt.Fprintln(t, strings.Join(line(e), "\t"))
	}
	return t.Flush()
}

func line(e Entry) []string {
	outcome, ms := string(e.Outcome), ""
	if e.Phase == diskapi.Returned {
		ms = fmt.Sprintf("%.1f", e.DurationMs)
	} else {
		outcome = string(e.Phase)
	}
	detail := e.Detail
	if e.FaultID != "" {
		detail = strings.TrimSpace(detail + " [" + e.FaultID + "]")
	}
	return []string{
		fmt.Sprint(e.Seq), e.Time.Format("15:04:05.000"), string(e.Call),
		dash(e.Volume), dash(e.Node), outcome, dash(e.Code), dash(ms), detail,
	}
}

func PrintViolations(w io.Writer, violations []Violation) error {
	if len(violations) == 0 {
		_, err := fmt.Fprintln(w, "The disk service saw no violation.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEQ\tTIME\tRULE\tATTEMPT\tMESSAGE")
	for _, v := range violations {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", v.Seq, v.Time.Format("15:04:05.000"), v.Rule, v.Attempt, v.Message)
	}
	return t.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
