package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// challengeTime is how long a challenge is answered at most.
const challengeTime = time.Hour

// client calls the authority of e.
func (m *Manager) client(e config.Certificate) *acme.Client {
	return &acme.Client{Directory: e.ACME.Directory, HTTPClient: m.Client, UserAgent: "Sluice", PollTimeout: 5 * time.Minute, Logger: slog.New(slog.DiscardHandler)}
}

// obtain has the authority of e issue a certificate, and checks what comes back as it
// would an operator's.
func (m *Manager) obtain(ctx context.Context, e config.Certificate, name string) (p Pair, err error) {
	c := &acmez.Client{Client: m.client(e), ChallengeSolvers: m.solvers(e.ACME.Challenge)}
	account, err := m.account(ctx, c.Client, *e.ACME)
	if err != nil {
		return p, fmt.Errorf("account: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	request, err := acmez.NewCSR(key, e.Hosts)
	if err != nil {
		return p, err
	}
	order, err := acmez.OrderParametersFromCSR(account, request)
	if err != nil {
		return p, err
	}
	if order.Replaces, err = m.Store.leaf(ctx, name); err != nil {
		return p, err
	}
	chains, err := c.ObtainCertificate(ctx, order)
	if err != nil {
		return p, err
	}
	if len(chains) == 0 {
		return p, errors.New("the authority issued nothing")
	}
	text, err := keyText(key)
	if err != nil {
		return p, err
	}
	if p, err = ReadPair(chains[0].ChainPEM, text, m.Store.now()); err != nil {
		return p, err
	}
	if !covers(p.Leaf, e.Hosts) {
		return p, errors.New("the authority issued a certificate for other hosts")
	}
	return p, nil
}

func keyText(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// askWhen asks the authority when it wants a certificate to be renewed. One that does
// not say is asked again later.
func (m *Manager) askWhen(ctx context.Context, e config.Certificate, c Certificate) error {
	leaf, err := m.Store.leaf(ctx, c.Name)
	if err != nil || leaf == nil {
		return err
	}
	var at time.Time
	if info, err := m.client(e).GetRenewalInfo(ctx, leaf); err == nil && info.HasWindow() {
		at = info.SelectedTime
	}
	return m.Store.renewAt(ctx, c.Name, at)
}

// account returns with whom we are known to an authority. Asked with a key that it
// knows, it answers with the account that there is.
func (m *Manager) account(ctx context.Context, c *acme.Client, a config.ACME) (acme.Account, error) {
	key, err := m.Store.accountKey(ctx, accountID(a.Directory, a.Email))
	if err != nil {
		return acme.Account{}, err
	}
	account := acme.Account{PrivateKey: key, TermsOfServiceAgreed: true}
	if a.Email != "" {
		account.Contact = []string{"mailto:" + a.Email}
	}
	return c.NewAccount(ctx, account)
}

// accountKey returns the key of an account, which is made and stored before it is used.
func (s Store) accountKey(ctx context.Context, id string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if _, err := s.DB.Exec(ctx, `INSERT INTO acme_accounts (id, private_key) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, id, s.Box.Seal(der, accountRow(id))); err != nil {
		return nil, fmt.Errorf("store an account: %w", err)
	}
	var sealed []byte
	if err := s.DB.QueryRow(ctx, `SELECT private_key FROM acme_accounts WHERE id = $1`, id).Scan(&sealed); err != nil {
		return nil, fmt.Errorf("read an account: %w", err)
	}
	if der, err = s.Box.Open(sealed, accountRow(id)); err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	known, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the stored key of an account is of another kind")
	}
	return known, nil
}

// leaf is the certificate of a name that is in force; nil: none is.
func (s Store) leaf(ctx context.Context, name string) (*x509.Certificate, error) {
	var chain *string
	err := s.DB.QueryRow(ctx, `SELECT chain FROM certificates WHERE name = $1`, name).Scan(&chain)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errGone
	}
	if err != nil || chain == nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(*chain))
	if block == nil {
		return nil, errors.New("the stored chain is no PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// reason is what an operator is shown of a failed attempt.
func reason(err error) string {
	if p, ok := errors.AsType[acme.Problem](err); ok {
		text := p.Type + ": " + p.Detail
		for _, sub := range p.Subproblems {
			text += "; " + sub.Identifier.Value + ": " + sub.Detail
		}
		return text
	}
	return err.Error()
}
