package phone

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/phone/digest"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Settings say how the deployment is reached by telephone.
type Settings struct {
	// Available says that a process takes and makes calls: without one, the routes
	// answer 501.
	Available bool
	// Host is where lines are called, such as sip.example:5060. Empty: localhost.
	Host string
	// Trunk is the host through which calls go out. Empty: none do.
	Trunk string
	// Prefixes are how numbers and names begin that may be called; "+" stands for every
	// number. None: nobody can be called.
	Prefixes []string
}

// Service is what can be done with lines and calls. Every field is required, but Box.
type Service struct {
	DB       postgres.DB
	Events   events.Emitter
	Streams  streams.Service
	Plans    plans.Source   // how many calls go out in a day
	Box      *secretbox.Box // seals what checks passwords; nil: lines have auth allowlist only
	Settings Settings
	Now      func() time.Time
}

// now is the clock at the precision of the database and of the API.
func (v Service) now() time.Time { return v.Now().UTC().Truncate(time.Millisecond) }

// CreateLine stores a new line and returns it with its password, which nobody can read
// again; "" for a line with auth allowlist.
func (v Service) CreateLine(ctx context.Context, o owner.Owner, in Input) (Line, string, error) {
	l := Line{ID: ident.New("line"), Owner: o.ID, Account: o.Account, Plan: o.Plan, MaxDuration: usualDuration, CreatedAt: v.now()}
	l.UpdatedAt = l.CreatedAt
	if err := v.apply(ctx, o, in, &l); err != nil {
		return Line{}, "", err
	}
	var password string
	if l.Auth == Digest {
		var err error
		if password, err = v.newPassword(&l); err != nil {
			return Line{}, "", err
		}
	}
	return l, password, postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error { return insertLine(ctx, tx, l) })
}

// apply checks in, the stream that it names included, and puts it into l.
func (v Service) apply(ctx context.Context, o owner.Owner, in Input, l *Line) error {
	var f form.Form
	in.Apply(&f, l)
	if l.StreamID != "" {
		_, err := v.Streams.Get(ctx, o, l.StreamID)
		switch {
		case apierror.Code(err) == decision.NotFound:
			f.Fail("stream_id", "names no stream of yours", "the id of a stream of yours")
		case err != nil:
			return err
		}
	}
	return f.Err()
}

// newPassword gives l a new password and returns its text.
func (v Service) newPassword(l *Line) (string, error) {
	if v.Box == nil {
		return "", apierror.Errorf(decision.NotImplemented, "There is no key here that passwords could be sealed with: set SLUICE_SECRETS_KEY, or use auth allowlist.")
	}
	made := ident.NewSecret("sip")
	secret := digest.SecretOf(l.ID, made.Text)
	l.Secret, l.PasswordHint = v.Box.Seal(secret[:], l.ID), made.Hint
	return made.Text, nil
}

// CheckedBy returns what checks the password of l; false where it has none, or it
// cannot be opened.
func (v Service) CheckedBy(l Line) (digest.Secret, bool) {
	if v.Box == nil || l.Auth != Digest {
		return digest.Secret{}, false
	}
	raw, err := v.Box.Open(l.Secret, l.ID)
	if err != nil {
		return digest.Secret{}, false
	}
	return digest.ReadSecret(raw)
}

// UpdateLine changes the given fields.
func (v Service) UpdateLine(ctx context.Context, o owner.Owner, id string, in Input) (Line, error) {
	l, err := lineOf(ctx, v.DB, o.ID, id)
	if err != nil {
		return l, err
	}
	if err := v.apply(ctx, o, in, &l); err != nil {
		return l, err
	}
	l.UpdatedAt = v.now()
	return l, updateLine(ctx, v.DB, l)
}

// RotatePassword gives a line with auth digest a new password and returns its text.
// The old one stops at once for new calls; a call under way goes on.
func (v Service) RotatePassword(ctx context.Context, o owner.Owner, id string) (Line, string, error) {
	l, err := lineOf(ctx, v.DB, o.ID, id)
	if err != nil {
		return l, "", err
	}
	if l.Auth != Digest {
		return l, "", apierror.Errorf(decision.Conflict, "The line has no password: addresses decide who may call it.")
	}
	password, err := v.newPassword(&l)
	if err != nil {
		return l, "", err
	}
	l.UpdatedAt = v.now()
	return l, password, updatePassword(ctx, v.DB, l)
}
