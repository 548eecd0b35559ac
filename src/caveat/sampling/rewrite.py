from caveat.sampling.tape import Tape
def optimised(tape): return tape
