"""The reciter's weights and texts, and the script that trains it: python -m minillm.weights.train_reciter"""
