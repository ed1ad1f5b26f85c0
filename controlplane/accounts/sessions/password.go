package sessions

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// Cost of a new hash: OWASP's second choice for argon2id, 19 MiB and two passes.
const (
	memoryKiB = 19 * 1024
	passes    = 2
	lanes     = 1
	saltLen   = 16
	hashLen   = 32
)

// Bounds of a password. NIST SP 800-63B asks for at least 8 characters; the
// upper one bounds the work of hashing what a stranger sends.
const (
	MinPassword = 8    // characters
	MaxPassword = 1024 // bytes
)

// hashing bounds how many hashes are computed at once, and with it memory. Whoever
// has them computed has one place: who asks for many does not make others wait.
var hashing = fairshare.New(fairshare.Config{Places: 4, Share: 1, Waiting: 16})

// atAddress is the name of strangers in hashing.
func atAddress(address string) string { return "network " + networkOf(address) }

// CheckPassword returns the faults of a new password, nil when it will do.
func CheckPassword(password string) []decision.Detail {
	if utf8.RuneCountInString(password) < MinPassword || len(password) > MaxPassword {
		return []decision.Detail{{Field: "password", Issue: "has the wrong length",
			Expected: fmt.Sprintf("at least %d characters and at most %d bytes", MinPassword, MaxPassword)}}
	}
	return nil
}

// HashPassword returns the argon2id hash of password as a PHC string:
// $argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>. It waits for its turn, which is that
// of the caller in ctx, or of strangers at address. It fails with rate_limit_exceeded
// when too many of the same wait.
func HashPassword(ctx context.Context, password, address string) (string, error) {
	salt := make([]byte, saltLen)
	rand.Read(salt)
	p := phc{memory: memoryKiB, passes: passes, lanes: lanes, salt: salt}
	who := atAddress(address)
	if account := identity.Account(ctx); account != "" {
		who = account
	}
	sum, err := p.sum(ctx, who, password, hashLen)
	if err != nil {
		return "", err
	}
	p.hash = sum
	return p.String(), nil
}

// passwordIs reports whether stored, a PHC string, is the hash of password, for who.
func passwordIs(ctx context.Context, who, stored, password string) (bool, error) {
	p, err := parsePHC(stored)
	if err != nil {
		return false, err
	}
	sum, err := p.sum(ctx, who, password, uint32(len(p.hash)))
	return err == nil && subtle.ConstantTimeCompare(sum, p.hash) == 1, err
}

// phc is a parsed hash.
type phc struct {
	memory, passes uint32
	lanes          uint8
	salt, hash     []byte
}

// String gives the form in which a hash is stored.
func (p phc) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.passes, p.lanes, b64(p.salt), b64(p.hash))
}

// sum fails with service_unavailable when ctx ends before the turn of who, and with
// rate_limit_exceeded when too many wait for that.
func (p phc) sum(ctx context.Context, who, password string, length uint32) ([]byte, error) {
	leave, err := hashing.Enter(ctx, who)
	if errors.Is(err, fairshare.ErrBusy) {
		return nil, &apierror.Error{Code: decision.RateLimited, Message: "Too many passwords are being checked at once.", RetryAfter: 1, Cause: err}
	}
	if err == nil {
		defer leave()
		err = ctx.Err()
	}
	if err != nil {
		return nil, &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: err}
	}
	return argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.lanes, length), nil
}

var errPHC = errors.New("a stored password hash is malformed")

// parsePHC reads what String wrote, in time and memory linear in it. Costs far above
// ours are refused: they would let a stored value exhaust the machine.
func parsePHC(s string) (p phc, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, errPHC
	}
	n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes)
	if err != nil || n != 3 {
		return p, errPHC
	}
	p.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	if err != nil {
		return p, errPHC
	}
	p.hash, err = base64.RawStdEncoding.Strict().DecodeString(parts[5])
	if err != nil || !p.sane() || p.String() != s {
		return phc{}, errPHC
	}
	return p, nil
}

// sane bounds what one look at a stored hash may cost.
func (p phc) sane() bool {
	return p.memory >= 8 && p.memory <= 1<<20 && p.passes >= 1 && p.passes <= 16 && p.lanes >= 1 && p.lanes <= 16 &&
		len(p.salt) >= 8 && len(p.salt) <= 64 && len(p.hash) >= 16 && len(p.hash) <= 64
}
