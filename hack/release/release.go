// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// With keyless, cosign certifies its own identity, and the signature is in a public log.
const keyless = "keyless"

type release struct {
	repository string              // root of the work tree
	command    func(string) string // package of a program
	version    string              // v1.2.3
	registry   string              // registry.example.com/team
	sign       string              // file of a key, or keyless; empty: unsigned
	platforms  []v1.Platform       // of images
	only       []v1.Platform       // of the plugin; empty: all of krew's
	out        string              // folder
}

// publish checks everything before it pushes and signs. The folder out has notes.md and the release's
// files.
func (r release) publish(ctx context.Context) error {
	notes, err := r.begin()
	if err != nil {
		return err
	}
	files := filepath.Join(r.out, "files")
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(files, 0o755), os.WriteFile(filepath.Join(r.out, "notes.md"), []byte(notes), 0o644)); err != nil {
		return err
	}
	tag := strings.TrimPrefix(r.version, "v")
	made, err := images{
		repository: r.repository, command: r.command, version: r.version, platforms: r.platforms, prefix: r.registry, tag: tag, check: true,
		out: filepath.Join(r.out, "images"),
	}.write(ctx)
	if err != nil {
		return err
	}
	if err := (plugin{program{repository: r.repository, command: r.command("kubectl-moorage"), version: r.version}, r.only, files}).write(ctx); err != nil {
		return err
	}
	packed, err := r.packChart(ctx, files)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	sums := filepath.Join(files, "SHA256SUMS")
	if err := checksums(files, sums); err != nil {
		return err
	}
	// A broken signer fails before anything is public.
	if err := r.signFile(ctx, sums); err != nil {
		return err
	}
	var pushed []string
	for _, image := range made {
		references, err := r.push(ctx, image, tag)
		if err != nil {
			return fmt.Errorf("push image %s: %w", image.name, err)
		}
		pushed = append(pushed, references...)
	}
	chart, err := r.pushChart(ctx, packed, tag)
	if err != nil {
		return fmt.Errorf("push chart: %w", err)
	}
	return r.signPushed(ctx, append(pushed, chart))
}

// push returns the digest references of the image and its referrers.
func (r release) push(ctx context.Context, image built, tag string) ([]string, error) {
	repository, err := name.NewRepository(r.registry + "/" + image.name)
	if err != nil {
		return nil, err
	}
	top, err := layout.ImageIndexFromPath(image.folder)
	if err != nil {
		return nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	index, err := top.ImageIndex(image.digest)
	if err != nil {
		return nil, err
	}
	if err := remote.WriteIndex(repository.Tag(tag), index, remoteOptions(ctx)...); err != nil {
		return nil, err
	}
	references := []string{repository.Digest(image.digest.String()).String()}
	for _, descriptor := range manifest.Manifests {
		if descriptor.Digest == image.digest {
			continue
		}
		artifact, err := top.Image(descriptor.Digest)
		if err != nil {
			return nil, err
		}
		reference := repository.Digest(descriptor.Digest.String())
		if err := remote.Write(reference, artifact, remoteOptions(ctx)...); err != nil {
			return nil, err
		}
		references = append(references, reference.String())
	}
	fmt.Println("pushed", repository.Tag(tag))
	return references, nil
}

func remoteOptions(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// signFile leaves the bundle beside the file.
func (r release) signFile(ctx context.Context, file string) error {
	return r.cosign(ctx, "sign-blob", "--bundle", file+".sigstore.json", file)
}

func (r release) signPushed(ctx context.Context, references []string) error {
	return r.cosign(ctx, "sign", references...)
}

// A key needs no public log.
func (r release) cosign(ctx context.Context, command string, args ...string) error {
	flags := []string{"--yes"}
	switch r.sign {
	case "":
		return nil
	case keyless:
	default:
		config := filepath.Join(r.out, "signing-config.json")
		if err := os.WriteFile(config, []byte(`{"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json"}`), 0o644); err != nil {
			return err
		}
		flags = append(flags, "--key", r.sign, "--signing-config", config)
	}
	return r.tool(ctx, "hack/release", "cosign", append(append([]string{command}, flags...), args...)...)
}

func (r release) tool(ctx context.Context, folder, name string, args ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"tool", name}, args...)...)
	command.Dir = filepath.Join(r.repository, folder)
	command.Stdin = os.Stdin // cosign asks for a key's password
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, args[0], err, out)
	}
	return nil
}

// checksums has sha256sum's format.
func checksums(folder, file string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		raw, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(raw), entry.Name())
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}
