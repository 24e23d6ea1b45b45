//! Runs a filter as the kernel would, from the description of the instructions and not from the code
//! that wrote them.

use seccompiler::BpfProgram;

/// What a filter says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    Errno(i32),
    Kill,
}

pub(super) fn answer(filter: &BpfProgram, machine: u32, number: u32, args: [u64; 6]) -> Answer {
    let mut data = vec![number, machine, 0, 0];
    data.extend(args.iter().flat_map(|arg| [*arg as u32, (*arg >> 32) as u32]));
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    loop {
        let step = &filter[at];
        at += 1;
        let k = step.k;
        let holds = match step.code {
            // load an absolute word, and with a constant, jump
            0x20 => {
                accumulator = data[k as usize / 4];
                continue;
            }
            0x54 => {
                accumulator &= k;
                continue;
            }
            0x05 => {
                at += k as usize;
                continue;
            }
            0x15 => accumulator == k,
            0x25 => accumulator > k,
            0x35 => accumulator >= k,
            0x06 => return returned(k),
            other => panic!("no such instruction: {other:#x}"),
        };
        at += usize::from(if holds { step.jt } else { step.jf });
    }
}

fn returned(value: u32) -> Answer {
    match (value & 0xffff_0000, value & 0xffff) {
        (0x7fff_0000, 0) => Answer::Allow,
        (0x0005_0000, errno) => Answer::Errno(errno as i32),
        (0x8000_0000, 0) => Answer::Kill,
        other => panic!("no such answer: {other:x?}"),
    }
}
