package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/filters/keytable"
)

// head is the one row of edge_feed.
type head struct{ epoch, head, pruned uint64 }

// holds reports whether the log still has every change after position of epoch.
// A position beyond the head is one of a history that was lost.
func (h head) holds(epoch, position uint64) bool {
	return epoch == h.epoch && position >= h.pruned && position <= h.head
}

// page answers request q: changes if the log still has them all, else a part of
// a snapshot. It also returns the head of that moment.
func page(ctx context.Context, db postgres.DB, q request, limit int) (keytable.Page, head, error) {
	if q.cursor != (keytable.Tag{}) {
		return snapshotPage(ctx, db, q, limit)
	}
	p, h, err := deltaPage(ctx, db, q, limit)
	if err != nil || h.holds(q.epoch, q.position) {
		return p, h, err
	}
	return snapshotPage(ctx, db, request{}, limit)
}

// deltaPage reads head and changes in one statement, so that both are of one
// moment. The page means nothing unless the head holds the position asked for.
func deltaPage(ctx context.Context, db postgres.DB, q request, limit int) (keytable.Page, head, error) {
	p := keytable.Page{Epoch: q.epoch, Position: q.position, Hi: keytable.Buckets - 1}
	var h head
	var tag, record pgtype.DriverBytes // the driver's memory, valid for one row
	var seq *uint64
	rows, _ := db.Query(ctx, `
		SELECT f.epoch, f.head, f.pruned, r.tag, r.record, r.seq
		FROM edge_feed f LEFT JOIN LATERAL (
			SELECT tag, record, seq FROM edge_records
			WHERE seq > $2 AND f.epoch = $1 AND f.pruned <= $2 ORDER BY seq LIMIT $3
		) r ON true ORDER BY r.seq`, int64(q.epoch), int64(q.position), limit)
	_, err := pgx.ForEachRow(rows, []any{&h.epoch, &h.head, &h.pruned, &tag, &record, &seq}, func() error {
		if seq == nil {
			return nil
		}
		p.Position = *seq
		if record == nil {
			p.Records = keytable.Record{Tag: keytable.Tag(tag)}.Append(p.Records)
			return nil
		}
		p.Records = append(p.Records, record...)
		return nil
	})
	if err != nil {
		return keytable.Page{}, h, fmt.Errorf("read changes from the feed: %w", postgres.Unreachable(err))
	}
	p.Last = len(p.Records) < limit*keytable.RecordSize
	return p, h, nil
}

// snapshotPage reads the records behind q.cursor, or from the start. The first
// page fixes the position from which an edge goes on after the last one: what
// changes meanwhile comes once more as a delta.
func snapshotPage(ctx context.Context, db postgres.DB, q request, limit int) (keytable.Page, head, error) {
	var h head
	err := db.QueryRow(ctx, `SELECT epoch, head, pruned FROM edge_feed`).Scan(&h.epoch, &h.head, &h.pruned)
	if err != nil {
		return keytable.Page{}, h, fmt.Errorf("read the head of the feed: %w", postgres.Unreachable(err))
	}
	p := keytable.Page{Snapshot: true, Epoch: h.epoch, Position: q.position}
	first := q.cursor == (keytable.Tag{}) || !h.holds(q.epoch, q.position)
	after := []byte{} // before every tag
	if first {
		p.Position = h.head
	} else {
		end := lastTag(q.cursor.Bucket())
		after, p.Lo = end[:], q.cursor.Bucket()+1
	}
	rows, _ := db.Query(ctx, `SELECT record FROM edge_records WHERE record IS NOT NULL AND tag > $1 ORDER BY tag LIMIT $2`,
		after, limit+1)
	p.Records, err = collect(rows, limit+1)
	if err != nil {
		return keytable.Page{}, h, fmt.Errorf("read a snapshot of the feed: %w", postgres.Unreachable(err))
	}
	return p, h, cut(&p, limit)
}

func collect(rows pgx.Rows, most int) ([]byte, error) {
	all := make([]byte, 0, most*keytable.RecordSize)
	var record pgtype.DriverBytes
	_, err := pgx.ForEachRow(rows, []any{&record}, func() error {
		all = append(all, record...)
		return nil
	})
	return all, err
}

// cut ends page p, which has up to one record too many, at the end of a bucket
// and says what it covers.
func cut(p *keytable.Page, limit int) error {
	n := len(p.Records) / keytable.RecordSize
	if n <= limit {
		p.Hi, p.Last, p.Cursor = keytable.Buckets-1, true, lastTag(keytable.Buckets-1)
		return nil
	}
	over := bucketOf(p.Records, n-1)
	for n > 0 && bucketOf(p.Records, n-1) == over {
		n--
	}
	if n == 0 {
		return errors.New("a bucket of the feed has more records than a page")
	}
	p.Records = p.Records[:n*keytable.RecordSize]
	p.Hi = over - 1
	p.Cursor = lastTag(p.Hi)
	return nil
}

func bucketOf(records []byte, i int) uint32 {
	return keytable.Tag(records[i*keytable.RecordSize:][:16]).Bucket()
}

// lastTag is the highest tag of bucket n.
func lastTag(n uint32) (t keytable.Tag) {
	for i := range t {
		t[i] = 0xff
	}
	const free = 32 - keytable.BucketBits
	binary.BigEndian.PutUint32(t[:4], n<<free|(1<<free-1))
	return t
}
