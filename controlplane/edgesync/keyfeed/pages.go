package keyfeed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
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
// moment; records are joined in Postgres, which is cheaper than a row for each.
// The page means nothing unless the head holds the position asked for.
func deltaPage(ctx context.Context, db postgres.DB, q request, limit int) (keytable.Page, head, error) {
	p := keytable.Page{Epoch: q.epoch, Hi: keytable.Buckets - 1}
	var h head
	err := db.QueryRow(ctx, `
		SELECT f.epoch, f.head, f.pruned, coalesce(d.last, $2), coalesce(d.records, '')
		FROM edge_feed f, LATERAL (
			SELECT max(seq) AS last, string_agg(coalesce(record, tag || $4), '') AS records
			FROM (SELECT tag, record, seq FROM edge_records
				WHERE seq > $2 AND f.epoch = $1 AND f.pruned <= $2 ORDER BY seq LIMIT $3) r
		) d`, int64(q.epoch), int64(q.position), limit, tombstone).Scan(&h.epoch, &h.head, &h.pruned, &p.Position, &p.Records)
	if err != nil {
		return keytable.Page{}, h, fmt.Errorf("read changes from the feed: %w", err)
	}
	p.Last = len(p.Records) < limit*keytable.RecordSize
	return p, h, nil
}

// tombstone is what follows the tag in a record that says it is gone.
var tombstone = keytable.Record{}.Append(nil)[len(keytable.Tag{}):]

// snapshotPage reads the records behind q.cursor, or from the start. The first
// page fixes the position from which an edge goes on after the last one: what
// changes meanwhile comes once more as a delta.
func snapshotPage(ctx context.Context, db postgres.DB, q request, limit int) (keytable.Page, head, error) {
	var h head
	err := db.QueryRow(ctx, `SELECT epoch, head, pruned FROM edge_feed`).Scan(&h.epoch, &h.head, &h.pruned)
	if err != nil {
		return keytable.Page{}, h, fmt.Errorf("read the head of the feed: %w", err)
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
	err = db.QueryRow(ctx, `SELECT coalesce(string_agg(record, ''), '')
		FROM (SELECT record FROM edge_records WHERE record IS NOT NULL AND tag > $1 ORDER BY tag LIMIT $2) r`,
		after, limit+1).Scan(&p.Records)
	if err != nil {
		return keytable.Page{}, h, fmt.Errorf("read a snapshot of the feed: %w", err)
	}
	return p, h, cut(&p, limit)
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

// bucketOf is the bucket of the i'th record.
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
