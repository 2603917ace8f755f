// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
	"github.com/moorage-dev/moorage/internal/convert"
)

const testDriver = "disk.example.com"

// stage plays a scenario step by step: a script always gives the same transcript.
type stage struct {
	t       *testing.T
	clock   *fakeClock
	api     *fakeAPI
	driver  *fakeDriver
	engine  *engine
	rules   decide.Rules
	reader  objects.Reader
	queue   []func()
	held    chan struct{}
	ended   chan struct{}
	cancel  context.CancelFunc
	started bool
	lagging bool
	leading bool
	workers int

	lines  []string
	lineAt time.Time
}

func newStage(t *testing.T) *stage {
	s := &stage{
		t: t, clock: &fakeClock{now: time.Unix(1_700_000_000, 0)},
		held: make(chan struct{}, 1), ended: make(chan struct{}), leading: true, workers: 100,
		reader: objects.Reader{Driver: testDriver, PublishReadOnly: true, DefaultFSType: "ext4"},
		rules: decide.Rules{
			Driver: testDriver, Publishes: true,
			Backoff: decide.Backoff{First: time.Second, Max: 5 * time.Minute}, Random: func() float64 { return 0 },
		},
	}
	s.lineAt = s.clock.now
	s.api = newFakeAPI(s.write)
	s.driver = &fakeDriver{
		write: s.write, held: s.held, replies: map[string][]reply{},
		published: map[string][]string{}, answers: map[string]chan reply{},
	}
	return s
}

func (s *stage) write(line string) {
	if passed := s.clock.now.Sub(s.lineAt); passed > 0 {
		s.lines = append(s.lines, "... "+passed.Round(100*time.Millisecond).String())
	}
	s.lineAt = s.clock.now
	s.lines = append(s.lines, strings.ReplaceAll(line, s.reader.Finalizer(), "finalizer"))
}

func (s *stage) play(commands []string) []string {
	for _, c := range commands {
		when, rest, _ := strings.Cut(c, " ")
		switch when {
		case "given":
			s.do(rest)
		case "when":
			s.start()
			s.do(rest)
			s.settle()
		default:
			s.t.Fatalf("%q: a command starts with given or when", c)
		}
	}
	s.start()
	s.pass(3 * time.Second)
	s.kill()
	return s.lines
}

func (s *stage) start() {
	if s.started {
		return
	}
	s.started = true
	s.boot()
	s.settle()
}

func (s *stage) kill() {
	s.engine.mu.Lock()
	s.engine.stopping = true
	s.engine.mu.Unlock()
	s.queue, s.clock.timers = nil, nil
	heard := len(s.lines)
	s.cancel()
	for call := range s.driver.answers {
		delete(s.driver.answers, call)
		s.await()
	}
	s.lines = s.lines[:heard]
}

func (s *stage) boot() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	e, err := newEngine(ctx, engineConfig{
		Reader: s.reader, Rules: s.rules, API: s.api, Backend: s.driver, Clock: s.clock,
		Timeout: 15 * time.Second, Workers: s.workers,
		Leading: func() bool { return s.leading },
		Run:     func(f func()) { s.queue = append(s.queue, f) },
		Count:   func(decide.Action, decide.Result) {},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.engine = e
	s.api.events = nil
	for _, name := range sortedKeys(s.api.volumes) {
		e.SeeVolume(s.api.volumes[name])
	}
	for _, name := range sortedKeys(s.api.csinodes) {
		e.SeeNode(s.api.csinodes[name])
	}
	for _, name := range sortedKeys(s.api.attachments) {
		e.SeeAttachment(s.api.attachments[name])
	}
	e.Start()
}

func (s *stage) settle() {
	if !s.started {
		return
	}
	for {
		switch {
		case len(s.api.events) > 0 && !s.lagging:
			event := s.api.events[0]
			s.api.events = s.api.events[1:]
			event(s.engine)
		case len(s.queue) > 0:
			step := s.queue[0]
			s.queue = s.queue[1:]
			go func() {
				step()
				s.ended <- struct{}{}
			}()
			s.await()
		default:
			return
		}
	}
}

func (s *stage) await() {
	select {
	case <-s.ended:
	case <-s.held:
	}
}

func (s *stage) pass(d time.Duration) {
	end := s.clock.now.Add(d)
	for s.clock.step(end) {
		s.settle()
	}
}

func (s *stage) reply(call string, r reply) {
	answered := s.driver.answers[call]
	if answered == nil {
		s.t.Fatalf("no %s is on hold", call)
	}
	delete(s.driver.answers, call)
	answered <- r
	s.await()
	s.settle()
}

func (s *stage) do(command string) {
	head, rest, _ := strings.Cut(command, " ")
	w := parseWords(rest)
	switch head {
	case "driver", "api", "answer":
		s.script(head, rest)
	case "create", "change":
		s.put(w)
	case "delete":
		s.remove(w)
	case "annotate":
		va := s.api.attachments[w.at(0)].DeepCopy()
		if va.Annotations == nil {
			va.Annotations = map[string]string{}
		}
		for k, v := range w.keys {
			va.Annotations[k] = v
		}
		s.api.putAttachment(va)
	case "finalizer":
		s.finalizer(w)
	case "list":
		if err := s.engine.Reconcile(context.Background()); err != nil {
			s.write("# " + err.Error())
		}
	case "restart":
		s.kill()
		s.write("(the attacher is killed and starts again)")
		s.boot()
	case "unseen": // the watch has not delivered it yet, nor will it
		seen := len(s.api.events)
		s.do(rest)
		s.api.events = s.api.events[:seen]
	case "lag":
		s.lagging = w.at(0) == "on"
	case "pause": // the driver is away
		s.engine.Pause()
	case "resume":
		s.engine.Resume()
	case "stop": // the process has been told to
		s.engine.mu.Lock()
		s.engine.stopping = true
		s.engine.mu.Unlock()
	case "lease":
		s.leading = w.at(0) == "held"
	case "wait":
		d, err := time.ParseDuration(w.at(0))
		if err != nil {
			s.t.Fatal(err)
		}
		s.pass(d)
	default:
		s.t.Fatalf("%q is no command", command)
	}
}

// script has the form "publish: Internal, hold, ok".
func (s *stage) script(who, rest string) {
	what, list, ok := strings.Cut(rest, ":")
	if !ok {
		s.capability(parseWords(rest))
		return
	}
	for _, how := range strings.Split(list, ",") {
		how = strings.TrimSpace(how)
		switch who {
		case "api":
			s.api.failures[what] = append(s.api.failures[what], how)
		case "driver":
			s.driver.replies[what] = append(s.driver.replies[what], parseReply(s.t, how))
		case "answer":
			s.reply(what, parseReply(s.t, how))
		}
	}
}

func (s *stage) capability(w words) {
	switch w.at(0) {
	case "no-publish":
		s.rules.Publishes = false
	case "no-readonly":
		s.reader.PublishReadOnly = false
	case "multi-writer":
		s.reader.SingleNodeMultiWriter = true
	case "looks":
		s.rules.Looks = true
	case "has":
		s.driver.published[w.at(1)] = append(s.driver.published[w.at(1)], w.bare[2:]...)
	case "lost":
		delete(s.driver.published, w.at(1))
	case "one-at-a-time":
		s.workers = 1
	default:
		s.t.Fatalf("driver %s: no such capability", w.at(0))
	}
}

func parseReply(t *testing.T, how string) reply {
	w := parseWords(how)
	r := reply{context: w.dict("metadata"), silent: w.flag("done"), idle: w.flag("idle"), message: "the disk said no"}
	switch name := w.at(0); name {
	case "ok":
	case "hold":
		r.hold = true
	default:
		for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
			if c.String() == name {
				r.code = c
			}
		}
		if r.code == codes.OK {
			t.Fatalf("%q is no gRPC code", name)
		}
	}
	if w.flag("long") {
		r.message = strings.Repeat("no ", 600)
	}
	return r
}

func (s *stage) put(w words) {
	kind, name := w.at(0), w.at(1)
	meta := metav1.ObjectMeta{Name: name, UID: s.api.newUID(), CreationTimestamp: metav1.NewTime(s.clock.now)}
	meta.Finalizers = append(meta.Finalizers, w.list("finalizers")...)
	if w.flag("stamped") {
		meta.Finalizers = append(meta.Finalizers, s.reader.Finalizer())
	}
	if w.flag("deleting") {
		meta.DeletionTimestamp = &metav1.Time{Time: s.clock.now}
	}
	switch kind {
	case "va":
		s.api.putAttachment(s.attachment(w, meta))
	case "pv":
		pv := persistentVolume(w, meta)
		if have := s.api.volumes[name]; have != nil {
			pv.UID = have.UID
		}
		s.api.putVolume(pv)
	case "csinode":
		n := &storagev1.CSINode{ObjectMeta: meta}
		if id := w.get("id", ""); id != "" {
			n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: testDriver, NodeID: id}}
		}
		s.api.putNode(n)
	case "secret":
		s.api.secrets[name] = w.dict("data")
	default:
		s.t.Fatalf("no objects of kind %s", kind)
	}
}

func (s *stage) attachment(w words, meta metav1.ObjectMeta) *storagev1.VolumeAttachment {
	meta.Annotations = map[string]string{}
	for key, annotation := range map[string]string{
		"id": convert.AnnotationNodeID, "transitions": "moorage.dev/transitions", "wanted": "moorage.dev/wanted", "beside": "moorage.dev/beside",
	} {
		if v := w.get(key, ""); v != "" {
			meta.Annotations[annotation] = v
		}
	}
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
	va := &storagev1.VolumeAttachment{
		ObjectMeta: meta,
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: w.get("attacher", testDriver), NodeName: w.get("node", "node1")},
		Status: storagev1.VolumeAttachmentStatus{
			Attached: w.flag("attached"), AttachmentMetadata: w.dict("metadata"),
		},
	}
	if pv := w.get("pv", ""); pv != "" {
		va.Spec.Source.PersistentVolumeName = &pv
	}
	if w.flag("inline") {
		inline := persistentVolume(w, metav1.ObjectMeta{})
		va.Spec.Source.InlineVolumeSpec = &inline.Spec
	}
	return va
}

func persistentVolume(w words, meta metav1.ObjectMeta) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: meta}
	if namespace, name, ok := strings.Cut(w.get("claim", ""), "/"); ok {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name}
	}
	for _, mode := range strings.Split(w.get("modes", "RWO"), ",") {
		pv.Spec.AccessModes = append(pv.Spec.AccessModes, map[string]corev1.PersistentVolumeAccessMode{
			"RWO": corev1.ReadWriteOnce, "RWX": corev1.ReadWriteMany, "ROX": corev1.ReadOnlyMany, "RWOP": corev1.ReadWriteOncePod,
		}[mode])
	}
	if disk := w.get("gce", ""); disk != "" {
		pv.Labels = map[string]string{corev1.LabelTopologyZone: "zone-a"}
		pv.Spec.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: disk}
		if driver := w.get("migrated-to", ""); driver != "" {
			pv.Annotations = map[string]string{objects.AnnotationMigratedTo: driver}
		}
		return pv
	}
	source := &corev1.CSIPersistentVolumeSource{
		Driver: testDriver, VolumeHandle: w.get("handle", "handle1"), ReadOnly: w.flag("readonly"),
		VolumeAttributes: w.dict("attributes"),
	}
	if namespace, name, ok := strings.Cut(w.get("secret", ""), "/"); ok {
		source.ControllerPublishSecretRef = &corev1.SecretReference{Namespace: namespace, Name: name}
	}
	pv.Spec.CSI = source
	return pv
}

func (s *stage) remove(w words) {
	now := &metav1.Time{Time: s.clock.now}
	switch kind, name := w.at(0), w.at(1); kind {
	case "va":
		va := s.api.attachments[name].DeepCopy()
		va.DeletionTimestamp = now
		s.api.putAttachment(va)
	case "pv":
		pv := s.api.volumes[name].DeepCopy()
		pv.DeletionTimestamp = now
		s.api.putVolume(pv)
	case "csinode":
		s.api.dropNode(name)
	default:
		s.t.Fatalf("no objects of kind %s", kind)
	}
}

// finalizer puts one on a VolumeAttachment or PersistentVolume, or takes it off: "finalizer va va1
// +other".
func (s *stage) finalizer(w words) {
	name, off := strings.CutPrefix(w.at(2), "-")
	name = strings.TrimPrefix(name, "+")
	if name == "ours" {
		name = s.reader.Finalizer()
	}
	edit := func(have []string) []string {
		if off {
			return slices.DeleteFunc(slices.Clone(have), func(f string) bool { return f == name })
		}
		return append(slices.Clone(have), name)
	}
	if w.at(0) == "pv" {
		pv := s.api.volumes[w.at(1)].DeepCopy()
		pv.Finalizers = edit(pv.Finalizers)
		s.api.putVolume(pv)
		return
	}
	va := s.api.attachments[w.at(1)].DeepCopy()
	va.Finalizers = edit(va.Finalizers)
	s.api.putAttachment(va)
}
