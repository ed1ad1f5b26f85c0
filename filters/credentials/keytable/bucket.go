package keytable

// Records are kept in buckets, because shared data has no delete: an entry can
// only be overwritten. A bucket with its record taken out is really without it,
// and the number of entries has a bound.

// BucketBits is the number of leading bits of a tag that choose its bucket. With
// 18 bits a million keys fill buckets of four, and ten million of forty: a
// look-up copies 256 bytes, or 2.5 kB.
const BucketBits = 18

// Buckets is the number of buckets.
const Buckets = 1 << BucketBits

// Bucket is the number of the bucket of t.
func (t Tag) Bucket() uint32 { return uint32(t[0])<<10 | uint32(t[1])<<2 | uint32(t[2])>>6 }

// BucketKeyLen is the length of a shared-data key of a bucket.
const BucketKeyLen = 4

// BucketKey is the shared-data key of bucket n.
func BucketKey(n uint32) [BucketKeyLen]byte {
	return [BucketKeyLen]byte{'k', byte(n >> 16), byte(n >> 8), byte(n)}
}

// Find returns the record with tag t in bucket; ok is false when it is not
// there. The tags of keys come from a hash of the secret, so the time that a
// comparison takes tells nothing about any key.
func Find(bucket []byte, t Tag) (Record, bool) {
	if i := index(bucket, t); i >= 0 {
		return Decode(bucket[i:])
	}
	return Record{}, false
}

func index(bucket []byte, t Tag) int {
	for i := 0; i+RecordSize <= len(bucket); i += RecordSize {
		if Tag(bucket[i:i+16]) == t {
			return i
		}
	}
	return -1
}

// Apply returns bucket with the 64 bytes of record put in place of the one with
// the same tag, or added; a tombstone takes it out. It may write into bucket.
func Apply(bucket, record []byte) []byte {
	i := index(bucket, Tag(record[:16]))
	gone := Kind(record[16]) == KindNone
	switch {
	case i < 0 && gone:
		return bucket
	case i < 0:
		return append(bucket, record[:RecordSize]...)
	case gone:
		last := len(bucket) - RecordSize
		copy(bucket[i:], bucket[last:])
		return bucket[:last]
	default:
		copy(bucket[i:], record[:RecordSize])
		return bucket
	}
}
