//! How blocks are named on the command line, at the end of `--help`.

/// The forms of a block, and what chooses regions.
pub const INPUTS: &str = "\
Blocks:
  4801d8                a block's machine code in hexadecimal
  FILE:FUNCTION[+N]     a function's first basic block, or number N from 0
  FILE:FUNCTION@N       loop number N, with -- ARGS; FILE:@0xADDRESS: the one around
  FILE:0xADDRESS        the basic block at this address
  FILE:START..END       the code between two addresses, END exclusive
  FILE                  a program's regions between IACA markers
  -                     machine code, or a program with markers, from standard input

Assembly files choose regions with LLVM-MCA, OSACA or IACA markers.
PROGRAM:FUNCTION -- ARGS runs the program and takes its registers (block only).
snapshot:RECORDING takes the registers sampled at the block's first instruction.";
