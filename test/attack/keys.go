// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const keysValid = time.Hour

type pki struct {
	scheduler tls.Certificate // a kube-scheduler's, for the extender
	webhook   tls.Certificate // the webhook's, for another port
	forged    tls.Certificate // of the attackers' own authority
	unnamed   tls.Certificate // of the extender's authority, with a name that may not ask

	tenant    string // token of a service account in the attackers' namespace
	addressed string // for another audience
	orphaned  string // of a deleted service account
	expired   string // one of it that has expired
	altered   string // with the controller's name written into it
}

func (s *Scene) steal(ctx context.Context) (*pki, error) {
	p := &pki{}
	var err error
	if p.scheduler, err = s.pair(ctx, "moorage-extender-client"); err != nil {
		return nil, err
	}
	if p.webhook, err = s.pair(ctx, "moorage-webhook-tls"); err != nil {
		return nil, err
	}
	if p.forged, err = signed("system:kube-scheduler", nil); err != nil {
		return nil, err
	}
	authority, err := s.pair(ctx, "moorage-extender-ca")
	if err != nil {
		return nil, err
	}
	if p.unnamed, err = signed(editor().user, &authority); err != nil {
		return nil, err
	}
	return p, s.getTokens(ctx, p)
}

func (s *Scene) pair(ctx context.Context, name string) (tls.Certificate, error) {
	secret, err := s.admin.kube.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return pair, fmt.Errorf("Secret %s: %w", name, err)
	}
	return pair, nil
}

// Without an authority the certificate is signed by itself.
func signed(name string, authority *tls.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-keysValid), NotAfter: time.Now().Add(keysValid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, crypto.PrivateKey(key)
	if authority != nil {
		template.Subject.Organization = nil
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func (s *Scene) getTokens(ctx context.Context, p *pki) error {
	accounts := s.admin.kube.CoreV1().ServiceAccounts(s.Own)
	token := func(account string, audiences ...string) (string, error) {
		t, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("token of %s: %w", account, err)
		}
		return t.Status.Token, nil
	}
	for _, name := range []string{"attack-scraper", "attack-gone"} {
		if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	var errs [3]error
	p.tenant, errs[0] = token("attack-scraper")
	p.addressed, errs[1] = token("attack-scraper", "https://attack.example.com")
	p.orphaned, errs[2] = token("attack-gone")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if err := accounts.Delete(ctx, "attack-gone", metav1.DeleteOptions{}); err != nil {
		return err
	}
	key, err := readKey(s.SigningKey)
	if err != nil {
		return err
	}
	past := time.Now().Add(-time.Minute).Unix()
	if p.expired, err = rewritten(p.tenant, key, func(claims map[string]any) { claims["exp"] = past }); err != nil {
		return err
	}
	p.altered, err = rewritten(p.tenant, nil, func(claims map[string]any) { claims["sub"] = own("moorage-controller").user })
	return err
}

func readKey(file string) (*ecdsa.PrivateKey, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("key of tokens: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%s has no key", file)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// Without a key the token keeps its old signature.
func rewritten(token string, key *ecdsa.PrivateKey, change func(claims map[string]any)) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("the token has not three parts")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", err
	}
	var claims map[string]any
	if err := json.Unmarshal(raw, &claims); err != nil {
		return "", err
	}
	change(claims)
	if raw, err = json.Marshal(claims); err != nil {
		return "", err
	}
	parts[1] = base64.RawURLEncoding.EncodeToString(raw)
	if key != nil {
		digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		r, v, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			return "", err
		}
		parts[2] = base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...))
	}
	return strings.Join(parts, "."), nil
}
