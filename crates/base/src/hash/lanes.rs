//! SHA-256 of sixteen messages at a time, on processors with vectors of 512 bits.
//!
//! One message keeps a processor waiting: each round needs the one before it, also with the
//! instructions made for SHA-256. Sixteen messages in the lanes of a vector do not wait for each
//! other, and a block costs less than half.
//!
//! **Invariant.** Which lane a message takes, and beside which others, changes nothing: the states are
//! those of one message after another, which is what other processors do.

#![expect(unsafe_code, reason = "calls a function for a processor that was asked for first")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_ror_epi32, _mm512_set1_epi32,
    _mm512_set4_epi32, _mm512_shuffle_epi8, _mm512_shuffle_i32x4, _mm512_srli_epi32,
    _mm512_storeu_si512, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};
use std::ops::Range;

use super::{BLOCK, INITIAL, State, compress256, pad};

/// Messages at a time.
const LANES: usize = 16;

/// With fewer messages left than this, one after another is as quick.
const WORTH: usize = 10;

/// One word of every lane.
type Words = [u32; LANES];

/// Whether this processor can.
pub(super) fn are_there() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}

/// The states after all messages, in their order; `None` where it would not be quicker.
pub(super) fn states(messages: &[&[u8]]) -> Option<Vec<State>> {
    if messages.len() < WORTH || !are_there() {
        return None;
    }
    let mut done = vec![INITIAL; messages.len()];
    let mut waiting = messages.iter().copied().zip(&mut done);
    let mut lanes: [Lane<'_, '_>; LANES] = std::array::from_fn(|_| Lane::default());
    let mut state = [[0; LANES]; 8];
    loop {
        let mut busy = 0;
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.result.is_none()
                && let Some((message, result)) = waiting.next()
            {
                lane.take(message, result);
                put(&mut state, number, &INITIAL);
            }
            busy += usize::from(lane.result.is_some());
        }
        if busy < WORTH {
            break;
        }
        let mut blocks = [&[0; BLOCK]; LANES];
        for (block, lane) in blocks.iter_mut().zip(&mut lanes) {
            *block = lane.next().unwrap_or(block);
        }
        // SAFETY: `are_there` says that the processor has what the function is compiled for.
        unsafe { compress(&mut state, &blocks) };
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.whole.is_empty()
                && lane.left.is_empty()
                && let Some(result) = lane.result.take()
            {
                *result = get(&state, number);
            }
        }
    }
    for (number, lane) in lanes.iter_mut().enumerate() {
        if let Some(result) = lane.result.take() {
            *result = get(&state, number);
            compress256(result, lane.whole);
            compress256(result, lane.end.get(lane.left.clone()).unwrap_or_default());
        }
    }
    Some(done)
}

/// A message on its way.
struct Lane<'a, 'b> {
    /// Where its state belongs in the end; `None` while there is no message.
    result: Option<&'b mut State>,
    /// Whole blocks that are left.
    whole: &'a [[u8; BLOCK]],
    /// Its padded end. It is written where it stays: moving what was just written would wait for it.
    end: [[u8; BLOCK]; 2],
    /// Which blocks of the end are left.
    left: Range<usize>,
}

impl Default for Lane<'_, '_> {
    fn default() -> Self {
        Self { result: None, whole: &[], end: [[0; BLOCK]; 2], left: 0..0 }
    }
}

impl<'a, 'b> Lane<'a, 'b> {
    fn take(&mut self, message: &'a [u8], result: &'b mut State) {
        let (whole, rest) = message.as_chunks();
        self.end = [[0; BLOCK]; 2];
        self.left = 0..pad(&mut self.end, rest, message.len()).len();
        (self.whole, self.result) = (whole, Some(result));
    }

    fn next(&mut self) -> Option<&[u8; BLOCK]> {
        match self.whole.split_first() {
            Some((block, rest)) => {
                self.whole = rest;
                Some(block)
            }
            None => self.end.get(self.left.next()?),
        }
    }
}

/// Writes a lane's column.
fn put<const N: usize>(rows: &mut [Words; N], lane: usize, column: &[u32; N]) {
    for (row, word) in rows.iter_mut().zip(column) {
        if let Some(slot) = row.get_mut(lane) {
            *slot = *word;
        }
    }
}

/// Reads a lane's column.
fn get<const N: usize>(rows: &[Words; N], lane: usize) -> [u32; N] {
    rows.each_ref().map(|row| row.get(lane).copied().unwrap_or_default())
}

/// What is added in each round.
const ROUNDS: [[u32; 16]; 4] = [
    [
        0x428a_2f98,
        0x7137_4491,
        0xb5c0_fbcf,
        0xe9b5_dba5,
        0x3956_c25b,
        0x59f1_11f1,
        0x923f_82a4,
        0xab1c_5ed5,
        0xd807_aa98,
        0x1283_5b01,
        0x2431_85be,
        0x550c_7dc3,
        0x72be_5d74,
        0x80de_b1fe,
        0x9bdc_06a7,
        0xc19b_f174,
    ],
    [
        0xe49b_69c1,
        0xefbe_4786,
        0x0fc1_9dc6,
        0x240c_a1cc,
        0x2de9_2c6f,
        0x4a74_84aa,
        0x5cb0_a9dc,
        0x76f9_88da,
        0x983e_5152,
        0xa831_c66d,
        0xb003_27c8,
        0xbf59_7fc7,
        0xc6e0_0bf3,
        0xd5a7_9147,
        0x06ca_6351,
        0x1429_2967,
    ],
    [
        0x27b7_0a85,
        0x2e1b_2138,
        0x4d2c_6dfc,
        0x5338_0d13,
        0x650a_7354,
        0x766a_0abb,
        0x81c2_c92e,
        0x9272_2c85,
        0xa2bf_e8a1,
        0xa81a_664b,
        0xc24b_8b70,
        0xc76c_51a3,
        0xd192_e819,
        0xd699_0624,
        0xf40e_3585,
        0x106a_a070,
    ],
    [
        0x19a4_c116,
        0x1e37_6c08,
        0x2748_774c,
        0x34b0_bcb5,
        0x391c_0cb3,
        0x4ed8_aa4a,
        0x5b9c_ca4f,
        0x682e_6ff3,
        0x748f_82ee,
        0x78a5_636f,
        0x84c8_7814,
        0x8cc7_0208,
        0x90be_fffa,
        0xa450_6ceb,
        0xbef9_a3f7,
        0xc671_78f2,
    ],
];

/// Of two rows of four quarters: the first and third of each.
const EVEN: i32 = 0x88;
/// Of two rows of four quarters: the second and fourth of each.
const UNEVEN: i32 = 0xdd;

/// Of three bits: the second where the first is set, else the third.
const CHOOSE: i32 = 0xca;
/// Of three bits: what most of them are.
const MOST: i32 = 0xe8;
/// Of three bits: whether an odd number is set.
const ODD: i32 = 0x96;

/// One block of every lane.
#[target_feature(enable = "avx512f,avx512bw")]
fn compress(state: &mut [Words; 8], blocks: &[&[u8; BLOCK]; LANES]) {
    let [a, b, c, d, e, f, g, h] = &*state;
    let before = [load(a), load(b), load(c), load(d), load(e), load(f), load(g), load(h)];
    let mut w = words(blocks);
    let mut s = before;
    for (part, k) in ROUNDS.iter().enumerate() {
        if part > 0 {
            schedule(&mut w);
        }
        sixteen_rounds(&mut s, &w, k);
    }
    for ((row, s), before) in state.iter_mut().zip(s).zip(before) {
        store(row, add(s, before));
    }
}

/// Repeats an expression for sixteen numbers.
macro_rules! sixteen {
    ($of:ident) => {
        [
            $of!(0),
            $of!(1),
            $of!(2),
            $of!(3),
            $of!(4),
            $of!(5),
            $of!(6),
            $of!(7),
            $of!(8),
            $of!(9),
            $of!(10),
            $of!(11),
            $of!(12),
            $of!(13),
            $of!(14),
            $of!(15),
        ]
    };
}

/// The words of all blocks: the first of each, the second of each, and so on.
///
/// A table of sixteen by sixteen is turned: within pairs of rows, within fours, and then quarters of
/// rows change places, twice.
#[expect(clippy::cognitive_complexity, reason = "one choice a step, written out sixteen times")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn words(blocks: &[&[u8; BLOCK]; LANES]) -> [__m512i; 16] {
    // Bytes in each word from the last to the first.
    let order = _mm512_set4_epi32(0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203);
    macro_rules! row {
        ($i:literal) => {
            _mm512_shuffle_epi8(load_bytes(blocks[$i]), order)
        };
    }
    let t = sixteen!(row);
    macro_rules! pairs {
        ($i:literal) => {
            match $i % 2 {
                0 => _mm512_unpacklo_epi32(t[$i], t[$i | 1]),
                _ => _mm512_unpackhi_epi32(t[$i - $i % 2], t[$i]),
            }
        };
    }
    let t = sixteen!(pairs);
    macro_rules! fours {
        ($i:literal) => {
            match $i % 2 {
                0 => _mm512_unpacklo_epi64(
                    t[$i - $i % 4 + $i % 4 / 2],
                    t[$i - $i % 4 + $i % 4 / 2 + 2],
                ),
                _ => _mm512_unpackhi_epi64(
                    t[$i - $i % 4 + $i % 4 / 2],
                    t[$i - $i % 4 + $i % 4 / 2 + 2],
                ),
            }
        };
    }
    let t = sixteen!(fours);
    macro_rules! quarters {
        ($i:literal) => {
            match $i % 8 / 4 {
                0 => _mm512_shuffle_i32x4::<EVEN>(
                    t[$i - $i % 8 + $i % 4],
                    t[$i - $i % 8 + $i % 4 + 4],
                ),
                _ => _mm512_shuffle_i32x4::<UNEVEN>(
                    t[$i - $i % 8 + $i % 4],
                    t[$i - $i % 8 + $i % 4 + 4],
                ),
            }
        };
    }
    let t = sixteen!(quarters);
    macro_rules! halves {
        ($i:literal) => {
            match $i / 8 {
                0 => _mm512_shuffle_i32x4::<EVEN>(t[$i % 8], t[$i % 8 + 8]),
                _ => _mm512_shuffle_i32x4::<UNEVEN>(t[$i % 8], t[$i % 8 + 8]),
            }
        };
    }
    sixteen!(halves)
}

/// The next sixteen words of the message.
#[inline]
#[target_feature(enable = "avx512f")]
fn schedule(w: &mut [__m512i; 16]) {
    macro_rules! next {
        ($($i:literal)*) => { $({
            let (near, far) = (w[($i + 1) % 16], w[($i + 14) % 16]);
            let near = odd(
                _mm512_ror_epi32::<7>(near),
                _mm512_ror_epi32::<18>(near),
                _mm512_srli_epi32::<3>(near),
            );
            let far = odd(
                _mm512_ror_epi32::<17>(far),
                _mm512_ror_epi32::<19>(far),
                _mm512_srli_epi32::<10>(far),
            );
            w[$i] = add(add(w[$i], near), add(w[($i + 9) % 16], far));
        })* };
    }
    next!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sixteen_rounds(state: &mut [__m512i; 8], w: &[__m512i; 16], k: &[u32; 16]) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    macro_rules! round {
        ($i:literal $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
            let mixed = odd(
                _mm512_ror_epi32::<6>($e),
                _mm512_ror_epi32::<11>($e),
                _mm512_ror_epi32::<25>($e),
            );
            let chosen = _mm512_ternarylogic_epi32::<CHOOSE>($e, $f, $g);
            let word = add(w[$i], _mm512_set1_epi32(k[$i].cast_signed()));
            let one = add(add($h, word), add(mixed, chosen));
            let mixed = odd(
                _mm512_ror_epi32::<2>($a),
                _mm512_ror_epi32::<13>($a),
                _mm512_ror_epi32::<22>($a),
            );
            let most = _mm512_ternarylogic_epi32::<MOST>($a, $b, $c);
            $d = add($d, one);
            $h = add(one, add(mixed, most));
        };
    }
    macro_rules! eight {
        ($i:literal $j:literal $k:literal $l:literal $m:literal $n:literal $o:literal $p:literal) => {
            round!($i a b c d e f g h);
            round!($j h a b c d e f g);
            round!($k g h a b c d e f);
            round!($l f g h a b c d e);
            round!($m e f g h a b c d);
            round!($n d e f g h a b c);
            round!($o c d e f g h a b);
            round!($p b c d e f g h a);
        };
    }
    eight!(0 1 2 3 4 5 6 7);
    eight!(8 9 10 11 12 13 14 15);
    *state = [a, b, c, d, e, f, g, h];
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(left: __m512i, right: __m512i) -> __m512i {
    _mm512_add_epi32(left, right)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn odd(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<ODD>(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &Words) -> __m512i {
    // SAFETY: the array has the 64 bytes that are read, and no alignment is asked for.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_bytes(bytes: &[u8; BLOCK]) -> __m512i {
    // SAFETY: the array has the 64 bytes that are read, and no alignment is asked for.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(words: &mut Words, vector: __m512i) {
    // SAFETY: the array has the 64 bytes that are written, and no alignment is asked for.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}
