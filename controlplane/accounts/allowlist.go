package accounts

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Allowlist returns the blocks of addresses from which an account may call, in
// their order; none: from anywhere. It fails with not_found.
func (s Store) Allowlist(ctx context.Context, account string) ([]netip.Prefix, error) {
	return readAllowlist(ctx, s.DB, account, "")
}

// readAllowlist reads the list of one account; lock is empty or a locking clause.
func readAllowlist(ctx context.Context, db postgres.DB, account, lock string) (list []netip.Prefix, err error) {
	err = db.QueryRow(ctx, `SELECT ip_allowlist FROM accounts WHERE id = $1`+lock, account).Scan(&list)
	return list, postgres.NotFound(err, "read allowlist")
}

// SetAllowlist replaces the addresses from which an account may call with any
// credential, at the edges too; none: from anywhere. It fails with not_found,
// and with invalid_request for what is no address or block, and for more than
// 64 of them.
func (s Store) SetAllowlist(ctx context.Context, account string, texts []string) ([]netip.Prefix, error) {
	list, err := parseAllowlist(texts)
	if err != nil {
		return nil, err
	}
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		before, err := readAllowlist(ctx, tx, account, ` FOR UPDATE`)
		if err != nil || slices.Equal(before, list) {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE accounts SET ip_allowlist = $2 WHERE id = $1`, account, list); err != nil {
			return fmt.Errorf("set allowlist: %w", err)
		}
		err = audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "allowlist.set", Target: account, Before: before, After: list})
		if err != nil {
			return err
		}
		return apikeys.EmitAccountTx(ctx, tx, account)
	})
	return list, err
}

// SetOwnAllowlist is SetAllowlist for somebody of the account, who calls from an address:
// a list that would shut them out at once is refused, unless force is true.
func (s Store) SetOwnAllowlist(ctx context.Context, account string, texts []string, force, caller string) ([]netip.Prefix, error) {
	list, err := parseAllowlist(texts)
	if err != nil {
		return nil, err
	}
	if err := checkForce(force, list, caller); err != nil {
		return nil, err
	}
	return s.SetAllowlist(ctx, account, texts)
}

// parseAllowlist reads addresses and blocks, sorted and each once. It fails with
// every fault at once.
func parseAllowlist(texts []string) ([]netip.Prefix, error) {
	list := []netip.Prefix{}
	var details []decision.Detail
	if len(texts) > allowlist.Max {
		details = append(details, decision.Detail{Field: "addresses", Issue: "has too many elements", Expected: fmt.Sprintf("at most %d", allowlist.Max)})
		texts = nil
	}
	for i, text := range texts {
		p, ok := allowlist.Parse(text)
		if !ok {
			details = append(details, decision.Detail{Field: fmt.Sprintf("addresses[%d]", i), Issue: "is not an address or a block of them",
				Expected: "such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"})
		}
		list = append(list, p)
	}
	slices.SortFunc(list, netip.Prefix.Compare)
	return slices.Compact(list), apierror.Invalid(details)
}

// checkForce refuses a list that has no room for the caller's own address, and a
// force that is neither true nor false.
func checkForce(force string, list []netip.Prefix, caller string) error {
	switch {
	case force == "true":
		return nil
	case force != "" && force != "false":
		return apierror.Invalid([]decision.Detail{{Field: "force", Issue: "is not a truth value", Expected: "true or false"}})
	case len(list) == 0 || holds(list, caller):
		return nil
	}
	return apierror.Invalid([]decision.Detail{{Field: "addresses", Issue: "shuts out the address that you call from, " + caller,
		Expected: "a block that holds it, or ?force=true"}})
}

// holds reports whether one of the blocks holds address, which has no port.
func holds(list []netip.Prefix, address string) bool {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, p := range list {
		if p.Contains(addr.Unmap().WithZone("")) {
			return true
		}
	}
	return false
}
