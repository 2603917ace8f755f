// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

var rewrite = flag.Bool("rewrite", false, "write what the judge says into testdata instead of comparing")

// verdict begins the lines of a script that the judge wrote.
const verdict = "    -> "

// TestScripts plays the histories in testdata. Each line is a step:
//
//	verb volume node             the call arrives
//	verb volume node applied     its effect takes place
//	verb volume node ok          it returns with success
//	verb volume node CODE        it returns with an error (refused if the cloud
//	                             could have given it, otherwise failed)
//	verb volume node abandoned   its caller gave up
//	verb volume node lost        the service was killed
//	verb! volume node            all of arrive, applied and ok
//	fence node, unfence node, finish, info node slots=N, address node ADDRESS
//	cut-off CIDR, let-in CIDR    the storage refuses clients, or lets them in
//	write volume node N F        write N is made, F was the last that is flushed; it is
//	                             the first one of its writer if there is none, or with new=1
//	refuse-write volume node     a write is refused
//	begin volume operation       an operation begins that needs the volume attached; with
//	                             free=1 it does not. by= names its call
//	made volume snapshot         a snapshot was made by the call by=; with unready=1 it is copied
//	                             from then on
//	ready, torn volume           that copy is complete, or the operation came to nothing
//	copy volume                  a disk was made from snapshot=, or by the call by= from source=
//	restart                      the service was killed and is there again
//
// with mode=, ctx=, path= and flush= where they matter; a publish answers the
// context that its ctx= says, and stages carry what the last publish answered. A
// call with flush= ends the writer; session=old names another one. After each
// step come the violations that it added or changed.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the judge says (run with -rewrite to accept):\n%s", got)
			}
		})
	}
}

type script struct {
	t        *testing.T
	judge    *Judge
	seq      uint64
	open     map[string][]uint64
	latest   map[string]uint64
	contexts map[string]string
	writers  map[string]uint64
}

func play(t *testing.T, text string) string {
	t.Helper()
	s := newScript(t)
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, verdict) {
			continue
		}
		out.WriteString(line + "\n")
		switch {
		case strings.TrimSpace(line) == "":
			// A blank line ends a history: the next one starts afresh.
			s = newScript(t)
		case !strings.HasPrefix(line, "#"):
			before := s.judge.Violations()
			s.step(line)
			for i, v := range s.judge.Violations() {
				if i >= len(before) || before[i] != v {
					if v.Node == "" && v.Rule != diskapi.DeleteWhileAttached || v.Volume == "" || !strings.Contains(v.Message, "node "+v.Node) || strings.Contains(v.Message, "volume ") && !strings.Contains(v.Message, "volume "+v.Volume) {
						t.Errorf("it is about volume %s and node %s, and says: %s", v.Volume, v.Node, v.Message)
					}
					fmt.Fprintf(&out, "%s%s (%s): %s\n", verdict, v.Rule, v.Attempt, v.Message)
				}
			}
		}
	}
	return out.String()
}

func newScript(t *testing.T) *script {
	return &script{t: t, judge: New(), open: map[string][]uint64{}, latest: map[string]uint64{}, contexts: map[string]string{}, writers: map[string]uint64{}}
}

func (s *script) step(line string) {
	s.t.Helper()
	words, options := split(line)
	verb, all := strings.CutSuffix(words[0], "!")
	e := diskapi.Entry{}
	switch verb {
	case "finish":
		e.Call = diskapi.Finish
	case "fence":
		e.Call, e.Node = diskapi.FenceNode, words[1]
	case "unfence":
		e.Call, e.Node = diskapi.UnfenceNode, words[1]
	case "info":
		e.Call, e.Node, e.Slots = diskapi.NodeGetInfo, words[1], options.number(s.t, "slots")
		e.Phase, e.Outcome = diskapi.Returned, diskapi.OK
	case "address":
		e.Phase, e.Call, e.Node, e.Address = diskapi.Applied, diskapi.NodeGetInfo, words[1], words[2]
	case "cut-off", "let-in":
		e.Call, e.CIDRs = diskapi.FenceNetwork, words[1:]
		if verb == "let-in" {
			e.Call = diskapi.UnfenceNetwork
		}
		e.Phase = diskapi.Arrived
		e.ID = s.observe(e)
		e.Phase = diskapi.Applied
		s.observe(e)
		e.Phase, e.Outcome = diskapi.Returned, diskapi.OK
	case "write", "refuse-write":
		s.write(verb, words[1:], options)
		return
	case "restart":
		e.Call = diskapi.ServiceStarted
	case "begin", "made", "ready", "torn", "copy":
		s.operation(verb, words[1:], options)
		return
	default:
		s.call(verb, all, words[1:], options)
		return
	}
	if e.Phase == "" {
		e.Phase = diskapi.Noted
	}
	s.observe(e)
}

func (s *script) write(verb string, words []string, o options) {
	s.t.Helper()
	e := diskapi.Entry{Phase: diskapi.Noted, Call: diskapi.WriteRefused, Volume: words[0], Node: words[1]}
	if verb == "refuse-write" {
		s.observe(e)
		return
	}
	place := e.Volume + "@" + e.Node
	session, going := s.writers[place]
	going = going && o["new"] == ""
	e.Call, e.Write = diskapi.Wrote, &diskapi.WriteMark{Session: session}
	if !going {
		e.Call, e.AccessMode = diskapi.WriteBegan, modes[o["mode"]]
	}
	if _, err := fmt.Sscan(words[2]+" "+words[3], &e.Write.Written, &e.Write.Flushed); err != nil {
		s.t.Fatalf("write %v: %v", words, err)
	}
	if id := s.observe(e); !going {
		s.writers[place] = id
	}
}

var operationCalls = map[string]uint64{"": 1000, "1": 1001, "2": 1002}

func (s *script) operation(verb string, words []string, o options) {
	s.t.Helper()
	e := diskapi.Entry{ID: operationCalls[o["by"]], Phase: diskapi.Noted, Volume: words[0]}
	switch verb {
	case "begin":
		e.Call, e.Operation, e.WhileAttached = diskapi.WorkBegan, diskapi.Operation(words[1]), o["free"] == ""
	case "ready":
		e.Call = diskapi.SnapshotReady
	case "torn":
		e.Call = diskapi.WorkTorn
	case "made":
		e.Phase, e.Call, e.Snapshot, e.Unready = diskapi.Applied, diskapi.CreateSnapshot, words[1], o["unready"] != ""
	case "copy":
		e.Phase, e.Call, e.Snapshot, e.Source = diskapi.Applied, diskapi.CreateVolume, o["snapshot"], o["source"]
	}
	s.observe(e)
}

func (s *script) last(place string, o options) *diskapi.WriteMark {
	if o["flush"] == "" {
		return nil
	}
	n := uint64(o.number(s.t, "flush"))
	mark := &diskapi.WriteMark{Session: s.writers[place], Written: n, Flushed: n}
	if o["session"] == "old" {
		mark.Session = 0
	} else {
		delete(s.writers, place)
	}
	return mark
}

func (s *script) observe(e diskapi.Entry) uint64 {
	s.seq++
	e.Seq = s.seq
	if e.ID == 0 {
		e.ID = s.seq
	}
	s.judge.Observe(e)
	return e.ID
}

func (s *script) call(verb string, all bool, words []string, o options) {
	s.t.Helper()
	e := diskapi.Entry{Call: callOf(s.t, verb), Volume: words[0], Args: diskapi.Args{AccessMode: modes[o["mode"]]}}
	words = words[1:]
	if e.Call != diskapi.DeleteVolume {
		e.Node, words = words[0], words[1:]
	}
	if e.Call == diskapi.NodePublish || e.Call == diskapi.NodeUnpublish {
		e.Path = "/pod"
		if p, ok := o["path"]; ok {
			e.Path = p
		}
	}
	key := verb + e.Volume + e.Node + e.Path
	place := e.Volume + "@" + e.Node
	e.Write = s.last(place, o)
	switch {
	case all:
		s.end(s.arrive(e, key, place, o), e, "applied", place, o)
		s.end(s.take(key), e, "ok", place, o)
	case len(words) == 0:
		s.arrive(e, key, place, o)
	case words[0] == "applied":
		s.end(s.latest[key], e, "applied", place, o)
	default:
		s.end(s.take(key), e, words[0], place, o)
	}
}

func (s *script) arrive(e diskapi.Entry, key, place string, o options) uint64 {
	e.Phase = diskapi.Arrived
	if e.Call == diskapi.NodeStage || e.Call == diskapi.NodePublish {
		e.Context = map[string]string{"attachment": s.contexts[place]}
		if c, ok := o["ctx"]; ok {
			e.Context["attachment"] = c
		}
	}
	id := s.observe(e)
	s.open[key] = append(s.open[key], id)
	s.latest[key] = id
	return id
}

func (s *script) take(key string) uint64 {
	s.t.Helper()
	if len(s.open[key]) == 0 {
		s.t.Fatalf("no open call %s", key)
	}
	id := s.open[key][0]
	s.open[key] = s.open[key][1:]
	return id
}

func (s *script) end(id uint64, e diskapi.Entry, how, place string, o options) {
	e.ID, e.Phase, e.AccessMode = id, diskapi.Returned, ""
	switch how {
	case "applied":
		e.Phase = diskapi.Applied
	case "ok":
		e.Outcome, e.Code = diskapi.OK, "OK"
		if e.Call == diskapi.ControllerPublish {
			s.contexts[place] = o["ctx"]
			e.Context = map[string]string{"attachment": o["ctx"]}
		}
	case "abandoned":
		e.Outcome, e.Code = diskapi.Abandoned, "DeadlineExceeded"
	case "lost":
		e.Outcome, e.Code = diskapi.Lost, "Unavailable"
	default:
		e.Outcome, e.Code = diskapi.Failed, how
		if !diskapi.Ambiguous(how) {
			e.Outcome = diskapi.Refused
		}
	}
	s.observe(e)
}

var modes = map[string]string{
	"": "SINGLE_NODE_MULTI_WRITER", "RWOP": "SINGLE_NODE_SINGLE_WRITER",
	"RWX": "MULTI_NODE_MULTI_WRITER", "ROX": "MULTI_NODE_READER_ONLY",
}

func callOf(t *testing.T, verb string) diskapi.Call {
	t.Helper()
	c, ok := map[string]diskapi.Call{
		"publish": diskapi.ControllerPublish, "unpublish": diskapi.ControllerUnpublish,
		"stage": diskapi.NodeStage, "unstage": diskapi.NodeUnstage,
		"mount": diskapi.NodePublish, "unmount": diskapi.NodeUnpublish, "delete": diskapi.DeleteVolume,
	}[verb]
	if !ok {
		t.Fatalf("unknown verb %q", verb)
	}
	return c
}

type options map[string]string

func (o options) number(t *testing.T, key string) int {
	t.Helper()
	n, err := strconv.Atoi(o[key])
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return n
}

func split(line string) (words []string, o options) {
	o = options{}
	for _, w := range strings.Fields(line) {
		if key, value, ok := strings.Cut(w, "="); ok {
			o[key] = value
		} else {
			words = append(words, w)
		}
	}
	return words, o
}
