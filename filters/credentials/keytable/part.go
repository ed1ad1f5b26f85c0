package keytable

import "hash/crc32"

// Some values are longer than a record: a public key, a list of addresses. They
// are kept in parts, each in a record of its own.

// partSize is how many bytes of a value a part holds.
const partSize = 32

// MaxValue bounds a value in bytes: it costs a look-up for each 32 of them.
const MaxValue = 1280

// Split returns the records that hold value, which has 1 to MaxValue bytes,
// under tag t; nil for a value of another length. A shorter value than the one
// before leaves parts behind: delete those that Parts names beyond.
func Split(t Tag, value []byte) []Record {
	if len(value) == 0 || len(value) > MaxValue {
		return nil
	}
	sum := crc32.ChecksumIEEE(value)
	var list []Record
	for n := 0; n*partSize < len(value); n++ {
		r := Record{Tag: partTag(t, n), Kind: KindPart, Plan: uint16(len(value)), Limit: sum}
		copy(r.Secret[:], value[n*partSize:])
		list = append(list, r)
	}
	return list
}

// Parts returns the tags of all parts that a value under t may have.
func Parts(t Tag) []Tag {
	tags := make([]Tag, MaxValue/partSize)
	for n := range tags {
		tags[n] = partTag(t, n)
	}
	return tags
}

// partTag is the tag of part n: the first is found by t itself.
func partTag(t Tag, n int) Tag {
	if n == 0 {
		return t
	}
	return tagOf(append(append([]byte("part\x00"), t[:]...), byte(n)))
}

// Join puts the value under t together again. found is false when there is
// none. whole is false when its parts do not belong together: a new value is
// just arriving, and the caller must neither use nor ignore it. It looks up 40
// parts and allocates 2 KiB at most.
func Join(t Tag, record func(Tag) (Record, bool)) (value []byte, found, whole bool) {
	first, found := record(t)
	if !found || first.Kind != KindPart || first.Plan == 0 || first.Plan > MaxValue {
		return nil, false, false
	}
	size := int(first.Plan)
	value = make([]byte, 0, size+partSize)
	for n, r := 0, first; ; {
		if r.Kind != KindPart || r.Plan != first.Plan || r.Limit != first.Limit {
			return nil, true, false
		}
		value = append(value, r.Secret[:]...)
		if n++; n*partSize >= size {
			break
		}
		r, _ = record(partTag(t, n))
	}
	return value[:size], true, crc32.ChecksumIEEE(value[:size]) == first.Limit
}
