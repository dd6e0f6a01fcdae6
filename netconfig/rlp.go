package netconfig

import "errors"

// errRLP is the one error of the reader: the bytes are not canonical RLP.
var errRLP = errors.New("not canonical RLP")

// rlpItem reads the first item of b: its content, whether it is a list, and what
// follows it. Only the shortest form of an item is accepted (Ethereum yellow
// paper, appendix B). Lengths of more than two bytes are refused: a record has
// at most 300.
func rlpItem(b []byte) (content []byte, isList bool, rest []byte, err error) {
	if len(b) == 0 {
		return nil, false, nil, errRLP
	}
	first := b[0]
	if first < 0x80 {
		return b[:1], false, b[1:], nil
	}
	isList = first >= 0xc0
	short := int(first &^ 0xc0)
	if !isList {
		short = int(first) - 0x80
	}
	if short <= 55 {
		if len(b) < 1+short {
			return nil, false, nil, errRLP
		}
		content = b[1 : 1+short]
		if !isList && short == 1 && content[0] < 0x80 {
			return nil, false, nil, errRLP
		}

		return content, isList, b[1+short:], nil
	}
	width := short - 55
	if width > 2 || len(b) < 1+width || b[1] == 0 {
		return nil, false, nil, errRLP
	}
	n := 0
	for _, c := range b[1 : 1+width] {
		n = n<<8 | int(c)
	}
	if n <= 55 || len(b) < 1+width+n {
		return nil, false, nil, errRLP
	}

	return b[1+width : 1+width+n], isList, b[1+width+n:], nil
}

// rlpUint reads a number in its shortest form, as content of an item.
func rlpUint(content []byte) (uint64, error) {
	if len(content) > 8 || len(content) > 0 && content[0] == 0 {
		return 0, errRLP
	}
	var v uint64
	for _, c := range content {
		v = v<<8 | uint64(c)
	}

	return v, nil
}

// appendRLPString appends s as an item.
func appendRLPString(dst, s []byte) []byte {
	if len(s) == 1 && s[0] < 0x80 {
		return append(dst, s[0])
	}

	return append(appendRLPHead(dst, 0x80, len(s)), s...)
}

// appendRLPHead appends the head of an item of n bytes; base is 0x80 for strings
// and 0xc0 for lists.
func appendRLPHead(dst []byte, base byte, n int) []byte {
	switch {
	case n <= 55:
		return append(dst, base+byte(n))
	case n <= 0xff:
		return append(dst, base+56, byte(n))
	default:
		return append(dst, base+57, byte(n>>8), byte(n))
	}
}

// appendRLPUint appends v in its shortest form.
func appendRLPUint(dst []byte, v uint64) []byte {
	return appendRLPString(dst, bigEndian(v))
}

// bigEndian returns v without leading zero bytes; zero is no bytes.
func bigEndian(v uint64) []byte {
	var b []byte
	for shift := 56; shift >= 0; shift -= 8 {
		if c := byte(v >> shift); c != 0 || len(b) > 0 {
			b = append(b, c)
		}
	}

	return b
}
