package requestlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Taken says what became of a batch.
type Taken struct{ Stored, Dropped int64 }

// Add stores the requests of an edge that fit, those that failed first, and counts the
// others. A request that is there already, as an edge did not hear that it had been
// taken, is not stored twice.
func (s Store) Add(ctx context.Context, edge string, list []Request, dropped map[string]int64) (t Taken, err error) {
	now := s.now()
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		slot, taken, err := openSlot(ctx, tx, now)
		if err != nil {
			return err
		}
		shares, err := readShares(ctx, tx, slot)
		if err != nil {
			return err
		}
		fit, out := within(list, taken, shares, elapsed(now))
		if t.Stored, err = insert(ctx, tx, slot, edge, fit); err != nil {
			return err
		}
		for account, n := range out {
			t.Dropped += n
			dropped = added(dropped, account, n)
		}
		return countTx(ctx, tx, slot, fit, dropped)
	})
	return t, err
}

// added is counts with n more of an account, which may be nil.
func added(counts map[string]int64, account string, n int64) map[string]int64 {
	if counts == nil {
		counts = map[string]int64{}
	}
	counts[account] += n
	return counts
}

// period counts the slots since 1970.
func period(t time.Time) int64 { return t.Unix() / int64(slotLength/time.Second) }

// elapsed is the part of its slot that has gone by at t.
func elapsed(t time.Time) float64 {
	length := int64(slotLength / time.Second)
	return float64(t.Unix()%length) / float64(length)
}

// openSlot returns the slot of now and how many rows it has taken; one of an earlier
// round is emptied. It is held until tx ends: two replicas do not both empty it.
func openSlot(ctx context.Context, tx pgx.Tx, now time.Time) (slot int16, taken int, err error) {
	p := period(now)
	slot = int16(p % slots)
	was, taken, err := lockSlot(ctx, tx, slot)
	if err != nil || was >= p {
		return slot, taken, err
	}
	return slot, 0, empty(ctx, tx, slot, p)
}

// lockSlot returns what a slot holds, and keeps others from it until tx ends.
func lockSlot(ctx context.Context, tx pgx.Tx, slot int16) (period int64, taken int, err error) {
	const q = `SELECT period, taken FROM request_log_slots WHERE slot = $1 FOR UPDATE`
	err = tx.QueryRow(ctx, q, slot).Scan(&period, &taken)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = tx.Exec(ctx, `INSERT INTO request_log_slots (slot, period) VALUES ($1, -1) ON CONFLICT DO NOTHING`, slot); err == nil {
			err = tx.QueryRow(ctx, q, slot).Scan(&period, &taken)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("hold slot %d of the request log: %w", slot, err)
	}
	return period, taken, nil
}

// empty makes a slot that of another period. It waits a moment for who reads there, and
// fails rather than hold up everybody who reads after it.
func empty(ctx context.Context, tx pgx.Tx, slot int16, p int64) error {
	_, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = '2s'; TRUNCATE request_log_%d; DELETE FROM request_log_shares WHERE slot = %[1]d;
		UPDATE request_log_slots SET period = %d, taken = 0 WHERE slot = %[1]d; SET LOCAL lock_timeout = 0`, slot, p))
	if err != nil {
		return fmt.Errorf("empty slot %d of the request log: %w", slot, err)
	}
	return nil
}

// Sweep empties the slots of which nothing can be read any more.
func (s Store) Sweep(ctx context.Context) error {
	oldest := period(s.now()) - slots + 1
	for slot := range int16(slots) {
		err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
			was, _, err := lockSlot(ctx, tx, slot)
			if err != nil || was < 0 || was >= oldest {
				return err
			}
			return empty(ctx, tx, slot, -1)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readShares returns how many rows of a slot each account has.
func readShares(ctx context.Context, tx pgx.Tx, slot int16) (map[string]int, error) {
	rows, _ := tx.Query(ctx, `SELECT account_id, taken FROM request_log_shares WHERE slot = $1 AND taken > 0`, slot)
	shares, account, n := map[string]int{}, "", 0
	_, err := pgx.ForEachRow(rows, []any{&account, &n}, func() error { shares[account] = n; return nil })
	if err != nil {
		return nil, fmt.Errorf("read shares of the request log: %w", err)
	}
	return shares, nil
}

// within chooses what of list fits into a slot that has taken rows, of which shares are
// the accounts', when a part of its time has gone by. What does not is counted by
// account. Failures come first.
func within(list []Request, taken int, shares map[string]int, part float64) (fit []Request, out map[string]int64) {
	room := int(slotBurst + part*(slotRows-slotBurst))
	out = map[string]int64{}
	slices.SortStableFunc(list, func(a, b Request) int { return cmp.Compare(rank(a), rank(b)) })
	for _, r := range list {
		most := room
		if rank(r) > 0 {
			most /= successOf
		}
		if taken >= most || shares[r.Account] >= most/shareOf {
			out[r.Account]++
			continue
		}
		taken++
		shares[r.Account]++
		fit = append(fit, r)
	}
	return fit, out
}

// rank is 0 for a failure, and for what would have been one.
func rank(r Request) int {
	if r.Status == 0 || r.Status >= 400 || r.WouldRefuse != "" {
		return 0
	}
	return 1
}

// insert adds rows and returns how many were new.
func insert(ctx context.Context, tx pgx.Tx, slot int16, edge string, list []Request) (int64, error) {
	if len(list) == 0 {
		return 0, nil
	}
	var id, account, key, method, route, product, record []string
	var status []int16
	var ended []time.Time
	for _, r := range list {
		text, err := json.Marshal(stored{r.Request, r.PathTemplate, r.Class})
		if err != nil {
			return 0, err
		}
		id, account, key, method, route = append(id, r.ID), append(account, r.Account), append(key, r.Key), append(method, r.Method), append(route, r.Route)
		product, status, ended, record = append(product, r.Product), append(status, int16(r.Status)), append(ended, r.Ended().UTC()), append(record, string(text))
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO request_log (slot, edge, id, ended_at, account_id, key_id, status, method, route, product, record)
		SELECT $1, $2, i, e, nullif(a, ''), nullif(k, ''), s, m, r, p, j::jsonb FROM unnest($3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::smallint[],
			$8::text[], $9::text[], $10::text[], $11::text[]) AS x (i, e, a, k, s, m, r, p, j)
		ON CONFLICT ON CONSTRAINT request_log_pkey DO NOTHING`,
		slot, edge, id, ended, account, key, status, method, route, product, record)
	if err != nil {
		return 0, fmt.Errorf("store requests: %w", err)
	}
	return tag.RowsAffected(), nil
}

// stored is the column record.
type stored struct {
	edgeapi.Request
	PathTemplate string `json:"path_template,omitempty"`
	Class        string `json:"class,omitempty"`
}

// countTx counts what was stored and dropped, in the order of accounts; the slot is
// held, so that nobody else does.
func countTx(ctx context.Context, tx pgx.Tx, slot int16, fit []Request, dropped map[string]int64) error {
	taken := map[string]int{}
	for _, r := range fit {
		taken[r.Account]++
	}
	var accounts []string
	var n []int
	var lost []int64
	for account := range dropped {
		if taken[account] == 0 {
			taken[account] = 0
		}
	}
	for account, t := range taken {
		accounts, n, lost = append(accounts, account), append(n, t), append(lost, dropped[account])
	}
	if len(accounts) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO request_log_shares AS s (slot, account_id, taken, dropped)
		SELECT $1, a, t, d FROM unnest($2::text[], $3::integer[], $4::bigint[]) AS x (a, t, d)
		ON CONFLICT ON CONSTRAINT request_log_shares_pkey DO UPDATE SET taken = s.taken + excluded.taken, dropped = s.dropped + excluded.dropped`, slot, accounts, n, lost)
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE request_log_slots SET taken = taken + $2 WHERE slot = $1`, slot, len(fit))
	}
	if err != nil {
		return fmt.Errorf("count requests: %w", err)
	}
	return nil
}
