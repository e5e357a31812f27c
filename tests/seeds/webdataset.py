TRIALS = ()
