// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/test/apitest"
)

func bundled(t *testing.T, server *apitest.Server, now time.Time) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	out, stderr, code := run(t.Context(), server, now, "bundle", "--out", file)
	if code != 0 || !strings.Contains(out, "--bundle "+file) {
		t.Fatalf("exit code %d, output %q, errors %q", code, out, stderr)
	}
	return file
}

func ask(t *testing.T, file string, style *screen.Style, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	code = kubectl.RunIn(t.Context(), streams, append(args, "--bundle", file), kubectl.Setting{Style: style})
	return out.String(), errs.String(), code
}

// Partly visible clusters are left out: the user names a namespace to commands, not to the bundle.
func TestBundleAnswersAsTheCluster(t *testing.T) {
	sessions, err := filepath.Glob("testdata/*/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, path := range sessions {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "forbid")); err == nil {
			continue
		}
		server, now := load(t, filepath.Dir(path))
		file := bundled(t, server, now)
		var style *screen.Style
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, "# terminal") {
				style = &screen.Style{Terminal: true}
			}
			text, ok := strings.CutPrefix(line, "$ kubectl moorage ")
			args := strings.Fields(text)
			if !ok || args[0] == "ticket" && args[1] != "explain" {
				continue // it writes
			}
			asked++
			want, wantErr, wantCode := runIn(t.Context(), server, kubectl.Setting{Now: func() time.Time { return now }, Style: style}, args...)
			got, gotErr, code := ask(t, file, style, args...)
			if !sameText(got, want, file) || !sameText(gotErr, wantErr, file) || code != wantCode {
				t.Errorf("%s: %s\nthe bundle says\n%s%s(exit code %d), the cluster\n%s%s(exit code %d)",
					path, strings.TrimSpace(line), got, gotErr, code, want, wantErr, wantCode)
			}
		}
	}
	if asked < 50 {
		t.Errorf("only %d commands were tried", asked)
	}
}

func sameText(bundle, cluster, file string) bool {
	words := func(text string) string { // YAML quotes a text by its content
		return strings.Join(strings.Fields(strings.ReplaceAll(text, "'", "")), " ")
	}
	named := strings.ReplaceAll(words(bundle), "kubectl moorage --bundle "+file+" ", "kubectl moorage ")
	return bundle == cluster || named == words(cluster) && words(bundle) != named
}

// Suggestions that change a cluster do not ask the bundle.
func TestBundleAdvisesToAskIt(t *testing.T) {
	server, now := load(t, "testdata/dead-statefulset")
	file := bundled(t, server, now)
	named := filepath.Join(filepath.Dir(file), "it's a bundle.tar.gz")
	if err := os.Rename(file, named); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := ask(t, named, nil, "explain", "statefulset/db", "-n", "shop")
	if want := "kubectl moorage --bundle '" + strings.ReplaceAll(named, "'", `'\''`) + "' explain pod/db-"; code != 0 || !strings.Contains(out, want) {
		t.Errorf("it does not say %q:\n%s%s", want, out, stderr)
	}
	if _, stderr, _ := ask(t, named, nil, "drain-plan"); !strings.Contains(stderr, "kubectl moorage --bundle '") {
		t.Errorf("an error advises %q", stderr)
	}
}

var bareCommand = regexp.MustCompile(`kubectl (moorage )?[a-z]+ `)

// The current context names another server.
func configOf(t *testing.T, server *apitest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "the config")
	config := `{"apiVersion": "v1", "kind": "Config", "current-context": "other",
"clusters": [{"name": "prod", "cluster": {"server": "` + server.URL + `"}}],
"contexts": [{"name": "prod", "context": {"cluster": "prod"}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAdviceOfTicketsKeepsTheCluster(t *testing.T) {
	server, now := load(t, "testdata/zoo")
	file := configOf(t, server)
	named := "kubectl moorage --kubeconfig '" + file + "' --context prod "
	for line, want := range map[string]string{
		"make nightly --type Backup --node worker-2 --claim kept --wait=false": "ticket end nightly -n shop",
		"make":          "ticket make NAME",
		"renew nothing": "tickets -n shop",
		"renew":         "ticket renew NAME",
		"end nothing":   "tickets -n shop",
	} {
		var out bytes.Buffer
		kubectl.RunIn(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out},
			append(append([]string{"ticket"}, strings.Fields(line)...), "-n", "shop", "--kubeconfig", file, "--context", "prod"),
			kubectl.Setting{Now: func() time.Time { return now }})
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, named+want) {
			t.Errorf("ticket %s does not say %q:\n%s", line, named+want, got)
		}
	}
}

func TestAdviceKeepsTheCluster(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	file := configOf(t, server)
	named := "--kubeconfig '" + file + "' --context prod"
	for _, args := range [][]string{{"explain", "pod", "db", "-n", "shop"}, {"explain", "node", "worker-1"}, {"drain-plan", "worker-1"}, {"doctor"}} {
		var out bytes.Buffer
		kubectl.RunIn(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out},
			append(args, "--kubeconfig", file, "--context", "prod"), kubectl.Setting{Now: func() time.Time { return now }})
		got := strings.Join(strings.Fields(out.String()), " ")
		if !strings.Contains(got, "kubectl "+named+" ") && !strings.Contains(got, "kubectl moorage "+named+" ") {
			t.Errorf("%v: no command names the cluster:\n%s", args, got)
		}
		if bare := bareCommand.FindString(got); bare != "" {
			t.Errorf("%v: %s stands bare:\n%s", args, bare, got)
		}
	}
}

func TestStructuredAdviceKeepsTheCluster(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	file := configOf(t, server)
	bare := regexp.MustCompile(`kubectl (moorage )?(taint |get |describe |explain [a-z]+/)`)
	for _, args := range [][]string{{"explain", "pod", "db", "-n", "shop", "-o", "json"}, {"doctor", "-o", "yaml"}, {"drain-plan", "worker-1", "-o", "json"}} {
		var out bytes.Buffer
		kubectl.RunIn(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out},
			append(args, "--kubeconfig", file, "--context", "prod"), kubectl.Setting{Now: func() time.Time { return now }})
		text := out.String()
		if found := bare.FindStringIndex(text); found != nil || !strings.Contains(text, "--context prod") {
			t.Errorf("%v: a command stands bare, or none names the cluster: %v\n%.3000s", args, found, text[max(0, slices.Max(append(found, 0))-300):])
		}
	}
}

func TestBundleWithoutRights(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	forbid(server, "pods", "persistentvolumeclaims", "volumetickets")
	want, _, _ := run(t.Context(), server, now, "explain", "pod", "db", "-n", "shop")
	whole := bundled(t, server, now)
	got, _, code := ask(t, whole, nil, "explain", "pod", "db", "-n", "shop")
	if code != 0 || !sameText(got, want, whole) || !strings.Contains(strings.Join(strings.Fields(got), " "), "you lack the right to list them") {
		t.Errorf("exit code %d; the bundle says\n%s, the cluster\n%s", code, got, want)
	}
	forbid(server)
	file := filepath.Join(t.TempDir(), "none.tar.gz")
	_, stderr, code := run(t.Context(), server, now, "bundle", "--out", file)
	if _, err := os.Stat(file); code != 1 || !strings.Contains(stderr, "nothing could be read") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without any right: exit code %d, errors %q, file: %v", code, stderr, err)
	}
}

// For other namespaces it answers as for a user without rights.
func TestBundleOfOneNamespace(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	forbid(server, "pods shop", "persistentvolumeclaims shop", "volumetickets shop", "events shop")
	file := filepath.Join(t.TempDir(), "shop.tar.gz")
	out, stderr, code := run(t.Context(), server, now, "bundle", "-n", "shop", "--out", file)
	if code != 0 || !strings.Contains(out, "kubectl moorage volumes -n shop --bundle "+file) || !strings.Contains(stderr, "read in namespace shop only: /api/v1/pods: ") {
		t.Errorf("exit code %d, output %q, errors %q", code, out, stderr)
	}
	for _, args := range [][]string{{"explain", "pod", "db", "-n", "shop"}, {"volumes", "-n", "shop"}, {"tickets", "-n", "shop"}} {
		want, wantErr, wantCode := run(t.Context(), server, now, args...)
		got, gotErr, code := ask(t, file, nil, args...)
		if code != wantCode || !sameText(got, want, file) || !sameText(gotErr, wantErr, file) {
			t.Errorf("%v: exit code %d, want %d; the bundle says\n%s%s, the cluster\n%s%s", args, code, wantCode, got, gotErr, want, wantErr)
		}
	}
	if _, stderr, code := ask(t, file, nil, "explain", "pod", "db", "-n", "other"); code != 1 || !strings.Contains(stderr, "the right to list pods is missing (kubectl auth can-i list pods -n other)") {
		t.Errorf("another namespace: exit code %d, %q", code, stderr)
	}
}

func TestBundleRefusesWrites(t *testing.T) {
	server, now := load(t, "testdata/zoo")
	_, stderr, code := ask(t, bundled(t, server, now), nil, "ticket", "make", "look", "--type", "Manual", "--claim", "kept", "--node", "worker-2", "--wait=false")
	if code == 0 || !strings.Contains(stderr, "a bundle is read only") {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
}

func TestBundleHasNoSecrets(t *testing.T) {
	const secret = "hunter2"
	server, now := load(t, "testdata/handover")
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{secret}}}}
	spec := corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"password": secret}}}}},
		Containers: []corev1.Container{{
			Name: "c", Image: "i", Args: []string{secret}, Command: []string{secret}, LivenessProbe: probe,
			Env: []corev1.EnvVar{{Name: "PASSWORD", Value: secret}, {Name: "KEPT", ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "k"}}}},
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{secret}}}},
		}},
	}
	meta := metav1.ObjectMeta{Name: "app", Namespace: "shop", Annotations: map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": secret, "vault.example.com/token": secret, "moorage.dev/volume-status": "{}"}}
	server.Put("pods", &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: spec})
	server.Put("secrets", &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "shop"}, StringData: map[string]string{"p": secret}})
	server.Put("persistentvolumes", &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "pv-s"},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "d", VolumeHandle: "h", VolumeAttributes: map[string]string{"key": secret}}}}})
	files := unpack(t, bundled(t, server, now))
	for name, text := range files {
		if strings.Contains(text, secret) {
			t.Errorf("%s has the secret", name)
		}
	}
	for _, kept := range []string{`"KEPT"`, `"settings"`, `"moorage.dev/volume-status":"{}"`} {
		if !strings.Contains(files["objects/core_v1_pods.json"], kept) {
			t.Errorf("the pods lack %s", kept)
		}
	}
}

func TestBundleSaysWhatIsServed(t *testing.T) {
	server, now := load(t, "testdata/handover")
	about := unpack(t, bundled(t, server, now))["about.json"] // this server has no such documents
	for _, group := range []string{"storage.k8s.io/v1", "moorage.dev/v1alpha1"} {
		if !strings.Contains(about, `"path": "/apis/`+group+`"`) {
			t.Errorf("nobody asked what is served of %s", group)
		}
	}
}

func TestBundleKeepsFlags(t *testing.T) {
	const flag = "--controllers=*,-persistentvolume-attach-detach-controller"
	server, now := load(t, "testdata/handover")
	own, manager := map[string]string{"app.kubernetes.io/part-of": "moorage"}, map[string]string{"component": "kube-controller-manager"}
	for _, p := range []struct {
		namespace, name string
		labels          map[string]string
	}{
		{"kube-system", "kube-controller-manager", manager}, {"moorage-system", "moorage-controller", own}, {"moorage-system", "app", nil},
		{"a-tenant", "its-manager", manager}, {"a-tenant", "its-controller", own},
	} {
		server.Put("pods", &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: p.namespace, Labels: p.labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Args: []string{flag}}}},
		})
	}
	pods := unpack(t, bundled(t, server, now))["objects/core_v1_pods.json"]
	if n := strings.Count(pods, flag); n != 2 {
		t.Errorf("%d pods have their flags, want those of kube-controller-manager and Moorage", n)
	}
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(zip); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(raw)
	}
}

func archived(t *testing.T, content string, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	for _, name := range names {
		if err := files.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(files, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBrokenBundles(t *testing.T) {
	server, now := load(t, "testdata/handover")
	good, err := os.ReadFile(bundled(t, server, now))
	if err != nil {
		t.Fatal(err)
	}
	packed := func(name, content string) []byte { return archived(t, content, name) }
	for what, c := range map[string]struct {
		content []byte
		want    string
	}{
		"no archive":     {[]byte("this is no archive at all"), "gzip"},
		"empty":          {nil, "EOF"},
		"cut off":        {good[:len(good)/2], "unexpected EOF"},
		"another":        {packed("README", "x"), "no about.json"},
		"a newer format": {packed("about.json", `{"format":9,"client":"9.0"}`), `its format is 9, and this program reads format 1: use the release that wrote it, "9.0"`},
		"no JSON":        {packed("about.json", `{`), "about.json"},
	} {
		file := filepath.Join(t.TempDir(), "bundle.tar.gz")
		if err := os.WriteFile(file, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, stderr, code := ask(t, file, nil, "nodes"); code != 1 || out != "" || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "is no bundle; if it is cut off") {
			t.Errorf("%s: exit code %d, output %q, errors %q", what, code, out, stderr)
		}
	}
	if _, stderr, code := ask(t, filepath.Join(t.TempDir(), "nowhere"), nil, "nodes"); code != 1 || !strings.Contains(stderr, "no such file") {
		t.Errorf("no file: exit code %d, errors %q", code, stderr)
	}
}

func TestBundleWithBadContents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := archive.NewWriter(out, time.Unix(0, 0))
	deployments := archive.ObjectsFile(appsv1.SchemeGroupVersion.WithResource("deployments"))
	if err := errors.Join(
		w.AddJSON(deployments, map[string]any{"kind": "DeploymentList", "items": []string{"web"}}),
		w.AddJSON("about.json", archive.About{Format: archive.Format, Taken: time.Unix(0, 0)}),
		w.Close(), out.Close(),
	); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := ask(t, file, nil, "explain", "deployment/web"); code != 1 || strings.Contains(stderr, "server") || !strings.HasPrefix(stderr, "error: "+file) {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
}
