package requestlog

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/recording"
	"sluice.dev/sluice/platform/storage/postgres"
)

// How long records of all requests are kept, and how much of them: a rehearsal looks at
// RecordsKept at most, and a minute before that.
const (
	RecordsKept    = time.Hour
	recordsSpare   = 10 * time.Minute
	maxRecordBytes = 512 << 20 // of all edges; the oldest go first
)

// PathKey is the key with which segments of paths are summed before they are stored. It
// is not in the database.
type PathKey []byte

// NewPathKey derives the key from the platform's secret.
func NewPathKey(secret []byte) PathKey {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("sluice recorded paths"))
	return h.Sum(nil)
}

// id tells keys apart, and says nothing else of them.
func (k PathKey) id() []byte {
	sum := sha256.Sum256(append([]byte("id\x00"), k...))
	return sum[:8]
}

// AddRecords stores blocks of an edge, with sums in place of paths. Blocks that cannot be
// read, or of a time that cannot be, are left out: sending them again would not help.
func (s Store) AddRecords(ctx context.Context, edge string, blocks [][]byte) error {
	if len(s.PathKey) == 0 {
		return nil
	}
	summer := recording.NewSummer(s.PathKey)
	for _, raw := range blocks {
		b, ok := recording.Parse(raw)
		if !ok || len(b.Requests) == 0 {
			continue
		}
		first, last := int64(math.MaxInt64), int64(0)
		for i := range b.Requests {
			r := &b.Requests[i]
			r.Path = summer.Path(r.Path)
			first, last = min(first, r.Time), max(last, r.Time)
		}
		if ahead := time.UnixMilli(last).Sub(s.now()); ahead > maxSkew || ahead < -RecordsKept-recordsSpare || first < 0 {
			continue
		}
		sum := sha256.Sum256(append([]byte(edge+"\x00"), raw...))
		_, err := s.DB.Exec(ctx, `INSERT INTO request_records (sum, edge, began_at, ended_at, requests, path_key, block) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			sum[:], edge, time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC(), len(b.Requests), s.PathKey.id(), b.Append(nil))
		if err != nil {
			return fmt.Errorf("store records of requests: %w", err)
		}
	}
	return nil
}

// RecordedBlock is a block with the edge that it is of.
type RecordedBlock struct {
	Edge      string
	BeganAt   time.Time
	EndedAt   time.Time
	Requests  int
	Recording recording.Block
}

// Records calls f with the blocks that have requests since a time, by the ends of what
// they have: the newest of them with at most most requests. It holds one at a time, and
// reports whether there were more before.
func (s Store) Records(ctx context.Context, since time.Time, most int, f func(RecordedBlock) error) (more bool, err error) {
	rows, err := s.DB.Query(ctx, `
		SELECT edge, began_at, ended_at, requests, block, total FROM (
			SELECT *, sum(requests) OVER (ORDER BY ended_at DESC, sum) AS total FROM request_records WHERE ended_at >= $1 AND path_key = $2
		) w ORDER BY ended_at, sum`, since, s.PathKey.id())
	if err != nil {
		return false, fmt.Errorf("read records of requests: %w", err)
	}
	var one RecordedBlock
	var block []byte
	var total int64
	_, err = pgx.ForEachRow(rows, []any{&one.Edge, &one.BeganAt, &one.EndedAt, &one.Requests, &block, &total}, func() error {
		if total > int64(most) {
			more = true
			return nil
		}
		var ok bool
		if one.Recording, ok = recording.Parse(block); !ok {
			return nil // of a release to come
		}
		return f(one)
	})
	if err != nil {
		return false, fmt.Errorf("read records of requests: %w", err)
	}
	return more, nil
}

// sweepRecords removes what is too old, and the oldest of what is too much.
func (s Store) sweepRecords(ctx context.Context) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM request_records WHERE ended_at < $1`, s.now().Add(-RecordsKept-recordsSpare)); err != nil {
			return fmt.Errorf("remove old records of requests: %w", err)
		}
		_, err := tx.Exec(ctx, `DELETE FROM request_records WHERE sum IN (SELECT sum FROM (
			SELECT sum, sum(octet_length(block)) OVER (ORDER BY ended_at DESC, sum) AS total FROM request_records) w WHERE total > $1)`, int64(maxRecordBytes))
		if err != nil {
			return fmt.Errorf("remove records of requests that are too many: %w", err)
		}
		return nil
	})
}
