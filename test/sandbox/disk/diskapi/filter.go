// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"net/url"
)

// Filter selects log entries. Empty fields select everything.
type Filter struct {
	Call    Call
	Phase   Phase
	Volume  string
	Node    string
	Outcome Outcome
	Code    string
	FaultID string
}

func (f Filter) Matches(e Entry) bool {
	return (f.Call == "" || f.Call == e.Call) &&
		(f.Phase == "" || f.Phase == e.Phase) &&
		(f.Volume == "" || f.Volume == e.Volume) &&
		(f.Node == "" || f.Node == e.Node) &&
		(f.Outcome == "" || f.Outcome == e.Outcome) &&
		(f.Code == "" || f.Code == e.Code) &&
		(f.FaultID == "" || f.FaultID == e.FaultID)
}

func (f Filter) Values() url.Values {
	v := url.Values{}
	for key, value := range map[string]string{
		"call": string(f.Call), "phase": string(f.Phase), "volume": f.Volume, "node": f.Node,
		"outcome": string(f.Outcome), "code": f.Code, "fault": f.FaultID,
	} {
		if value != "" {
			v.Set(key, value)
		}
	}
	return v
}

func FilterFrom(v url.Values) Filter {
	return Filter{
		Call: Call(v.Get("call")), Phase: Phase(v.Get("phase")),
		Volume: v.Get("volume"), Node: v.Get("node"),
		Outcome: Outcome(v.Get("outcome")), Code: v.Get("code"), FaultID: v.Get("fault"),
	}
}
